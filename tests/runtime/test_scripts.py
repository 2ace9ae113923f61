"""The other scripts: set-up, development server and deployment."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.runtime.server import OPERATOR_TOKEN, PROJECT_ROOT, Server, group_members

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTS = PROJECT_ROOT / "scripts"


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPTS / script), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def configuration() -> dict[str, object]:
    return tomllib.loads((PROJECT_ROOT / "wrangler.toml").read_text(encoding="utf-8"))


def test_a_second_set_up_does_nothing() -> None:
    result = run("setup")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_set_up_writes_tokens_once() -> None:
    file = PROJECT_ROOT / ".dev.vars"
    names = [line.partition("=")[0] for line in file.read_text(encoding="utf-8").splitlines()]
    assert {"API_TOKEN", "REPAIR_OPERATOR_TOKEN"} <= set(names)
    before = file.read_bytes()
    run("setup")
    assert file.read_bytes() == before


def test_no_lock_names_a_registry() -> None:
    for name in ("package-lock.json", "requirements/worker.txt", "requirements/dev.txt"):
        text = (PROJECT_ROOT / name).read_text(encoding="utf-8")
        assert '"resolved"' not in text
        assert "index-url" not in text


def test_the_worker_lock_and_the_project_have_one_list() -> None:
    project = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {requirement.partition(">")[0] for requirement in project["dependencies"]}
    lock = (PROJECT_ROOT / "requirements" / "worker.txt").read_text(encoding="utf-8")
    locked = {line.partition("==")[0] for line in lock.splitlines() if "==" in line}
    assert locked == declared == {"msgspec", "workers-runtime-sdk"}


def test_dev_serves_the_worker_with_the_tokens_of_the_environment(tmp_path: Path) -> None:
    with Server(script="dev", state=tmp_path) as server, server.client() as client:
        assert server.base_url.startswith("http://127.0.0.1:")
        assert client.get("/health").status_code == 200
        looked_at = client.get("/operator/services/dev", headers={"authorization": f"Bearer {OPERATOR_TOKEN}"})
        assert looked_at.status_code == 200
        group = server.pid
        assert server.stop() == 0
        assert list(group_members(group)) == []
    assert (tmp_path / "v3" / "do").is_dir()


def test_dev_refuses_an_unknown_option() -> None:
    result = run("dev", "--what")
    assert result.returncode == 2
    assert result.stderr == "scripts/dev: unrecognized arguments: --what (see scripts/dev --help)\n"


def test_deploy_uploads_the_worker_and_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    homes = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_CACHE_HOME": str(home / "cache")}
    result = run("deploy", "--dry-run", "--outdir", str(tmp_path / "out"), **homes)
    assert result.returncode == 0, result.stderr
    assert list(home.iterdir()) == []  # the user's own folders
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    sources = {path.relative_to(PROJECT_ROOT / "src").as_posix() for path in (PROJECT_ROOT / "src").rglob("*.py")}
    files.remove("README.md")  # wrangler's own
    vendored = {name for name in files if name.startswith("python_modules/")}
    assert files - vendored == sources
    assert {"worker.py", "dcb_runtime/__init__.py"} <= sources
    assert {"python_modules/msgspec/__init__.py", "python_modules/workers/__init__.py"} <= vendored
    assert not [name for name in vendored if name.endswith((".pyi", ".pyc", "METADATA"))]
    assert not [name for name in files if "test" in name]


def test_the_deployed_configuration_has_no_development_flag() -> None:
    assert configuration()["compatibility_flags"] == ["python_workers"]


def test_deploy_needs_a_database(tmp_path: Path) -> None:
    if "00000000-0000-0000-0000-000000000000" not in str(configuration()["d1_databases"]):
        pytest.skip("the configuration names a database")
    result = run("deploy", XDG_CONFIG_HOME=str(tmp_path))
    assert result.returncode == 1
    assert "wrangler d1 create" in result.stderr


@pytest.mark.parametrize(("script", "usage"), [("dev", "usage: scripts/dev "), ("deploy", "usage: scripts/deploy ")])
def test_help_is_the_usage(script: str, usage: str) -> None:
    result = run(script, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(usage)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with the real scripts, where nothing is installed yet."""
    folder = tmp_path / "clone"
    shutil.copytree(SCRIPTS, folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("package.json", "package-lock.json", ".npmrc", "wrangler.toml"):
        shutil.copy(PROJECT_ROOT / name, folder / name)
    return folder


def stub(file: Path, text: str) -> None:
    """A command that does nothing but what a test looks at."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def run_in(folder: Path, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(folder / "scripts" / script), *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def test_set_up_downloads_into_the_clone(clone: Path, tmp_path: Path) -> None:
    stub(tmp_path / "bin" / "npm", 'echo "$npm_config_cache $PIP_CACHE_DIR" >&2; exit 3')
    result = run_in(clone, "setup", PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}", HOME="/dev/null")
    assert result.returncode == 3
    assert result.stderr.splitlines()[-1] == f"{clone / '.cache' / 'npm'} {clone / '.cache' / 'pip'}"


def test_a_deployment_has_the_users_own_login_and_a_dry_run_has_not(clone: Path) -> None:
    stub(clone / "scripts" / "setup", "exit 0")
    stub(clone / "node_modules" / ".bin" / "wrangler", 'echo "$XDG_CONFIG_HOME: $*"')
    file = clone / "wrangler.toml"
    file.write_text(file.read_text().replace('database_id = "0000', 'database_id = "1234'))
    home = "/home/somebody/config"
    assert run_in(clone, "deploy", XDG_CONFIG_HOME=home).stdout == f"{home}: deploy\n"
    dry = run_in(clone, "deploy", "--dry-run", XDG_CONFIG_HOME=home).stdout
    assert dry == f"{clone / '.cache' / 'config'}: deploy --dry-run\n"
