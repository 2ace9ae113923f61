"""The Pyodide bundle: made from the glue that the patches know, refused for any other, made once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from scripts import bundle
from scripts.bundle import PATCHES, PRELUDE, GlueError, Patch, ensure_bundle, patch_glue
from tests.runtime.server import PROJECT_ROOT

if TYPE_CHECKING:
    from pathlib import Path

NODE_MODULES = PROJECT_ROOT / "node_modules"
GLUE = "\n".join(patch.fragment for patch in PATCHES for _ in range(patch.count))


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder like npm's, with packages that are just large enough to make a bundle of."""
    node_modules = tmp_path / "node_modules"
    for name, version in (("workerd", "1.0.0"), ("pyodide", "2.0.0")):
        (node_modules / name).mkdir(parents=True)
        (node_modules / name / "package.json").write_text(json.dumps({"version": version}))
    (node_modules / "pyodide" / "pyodide.asm.mjs").write_text(GLUE)
    (node_modules / "pyodide" / "pyodide.asm.wasm").write_bytes(b"wasm")
    (node_modules / "pyodide" / "python_stdlib.zip").write_bytes(b"zip")
    return node_modules


def test_every_fragment_is_replaced() -> None:
    patched = patch_glue(GLUE)
    assert patched.startswith(PRELUDE)
    for patch in PATCHES:
        assert patched.removeprefix(PRELUDE).count(patch.replacement) == patch.count


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.fragment[:30])
def test_a_missing_fragment_is_named(patch: Patch) -> None:
    with pytest.raises(GlueError, match=re.escape(patch.fragment[:120])) as caught:
        patch_glue(GLUE.replace(patch.fragment, "", 1))
    assert f"expected {patch.count} times" in str(caught.value)
    assert f"found {patch.count - 1} times" in str(caught.value)


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.fragment[:30])
def test_a_fragment_too_many_is_named(patch: Patch) -> None:
    with pytest.raises(GlueError, match=re.escape(patch.fragment[:120])) as caught:
        patch_glue(f"{GLUE}\n{patch.fragment}")
    assert f"found {patch.count + 1} times" in str(caught.value)


def test_the_installed_glue_is_the_expected_one() -> None:
    glue = (NODE_MODULES / "pyodide" / "pyodide.asm.mjs").read_text(encoding="utf-8")
    patched = patch_glue(glue)
    assert not re.search(r"\beval\(|\bnew WebAssembly\.Module\(|\bDate\.now\b", patched)


def test_a_bundle_is_made_once_for_its_versions(packages: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert ensure_bundle(packages, folder)
    assert not ensure_bundle(packages, folder)
    (packages / "workerd" / "package.json").write_text(json.dumps({"version": "1.0.1"}))
    assert ensure_bundle(packages, folder)
    assert not ensure_bundle(packages, folder)


def test_a_refused_glue_leaves_no_bundle(packages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (packages / "pyodide" / "pyodide.asm.mjs").write_text("another glue")
    assert bundle.main([str(packages), str(tmp_path / "cache")]) == 1
    assert f"found 0 times: {PATCHES[0].fragment}" in capsys.readouterr().err
    assert not (tmp_path / "cache" / bundle.BUNDLE_NAME).exists()
    assert not (tmp_path / "cache" / bundle.KEY_NAME).exists()


def test_an_interrupted_run_is_made_up_for(packages: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    ensure_bundle(packages, folder)
    (folder / bundle.KEY_NAME).unlink()
    assert ensure_bundle(packages, folder)
