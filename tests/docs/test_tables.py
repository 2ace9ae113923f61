"""What the pages say is what the code does: each table against the register that it tells of."""

from __future__ import annotations

import re

import pytest

from dcb_runtime import limits
from dcb_runtime.bootstrap.control import IMPORT_PHASES, READY_PHASES, RESET_PHASES, VERIFY_PHASES
from dcb_runtime.entry.routes import ROUTES
from dcb_runtime.errors import KINDS
from dcb_runtime.spans.attributes import ATTRIBUTES
from scripts import docs
from tests.docs.pages import block, page, rows
from tests.runtime.server import PROJECT_ROOT

UNITS = {"MiB": 1024**2, "KiB": 1024, "h": 3_600_000, "s": 1000, "": 1}


def value_of(text: str) -> int:
    """A limit's value as the table gives it, in the unit of its constant."""
    match = re.fullmatch(r"([0-9,.]+) ?([A-Za-z]*)", text)
    assert match is not None, text
    return round(float(match[1].replace(",", "")) * UNITS[match[2]])


def test_nothing_generated_is_stale() -> None:
    assert docs.main(["--check"]) == 0


def test_a_stale_page_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(docs.BLOCKS, "routes", ("README.md", lambda: "| nothing |"))
    assert docs.main(["--check"]) == 1
    assert capsys.readouterr().out == "docs: README.md is stale\n"


def test_the_errors_page_is_the_register() -> None:
    docs.declarations()  # imports every module that declares one
    told = {code.strip("`"): (int(status), text) for code, status, text, _ in rows(page("docs/errors.md"))}
    assert told == {kind.code: (kind.status, kind.text) for kind in KINDS.values()}
    assert len(rows(page("docs/errors.md"))) == len(KINDS)


def test_the_errors_page_names_the_module_that_declares_a_code() -> None:
    for code, _, _, module in rows(page("docs/errors.md")):
        source = (PROJECT_ROOT / "src" / "dcb_runtime" / module.strip("`")).read_text(encoding="utf-8")
        assert f'"{code.strip("`")}"' in source


def test_the_route_table_is_the_entrys() -> None:
    told = [(who, route.strip("`").partition("?")[0]) for who, route, _ in rows(block("README.md", "routes"))]
    assert told == [(route.who.value, f"{route.method} {route.template}") for route in ROUTES]


def test_the_route_table_names_the_query_parameters() -> None:
    for route, (_, told, _) in zip(ROUTES, rows(block("README.md", "routes")), strict=True):
        assert tuple(re.findall(r"[?&](\w+)=", told)) == route.query


def test_the_limits_have_their_constants_values() -> None:
    for _, value, _, constant in rows(block("README.md", "limits")):
        assert value_of(value) == getattr(limits, constant.strip("`")), constant


def test_a_limit_refuses_with_a_code_that_there_is() -> None:
    docs.declarations()
    codes = {code for _, _, told, _ in rows(block("README.md", "limits")) for code in re.findall(r"`(\w+)`", told)}
    assert codes <= KINDS.keys()


def test_each_limit_is_told_or_known_to_be_inside() -> None:
    told = {constant.strip("`") for *_, constant in rows(block("README.md", "limits"))}
    there = {name for name in vars(limits) if name.isupper()}
    assert told | docs.LIMITS_INSIDE == there
    assert not told & docs.LIMITS_INSIDE


def test_the_attribute_table_is_the_spans() -> None:
    told = {name.strip("`"): meaning for name, meaning in rows(block("docs/tracing.md", "spans"))}
    assert told == dict(ATTRIBUTES)


def test_the_architecture_page_tells_of_every_phase() -> None:
    (table,) = re.findall(r"^\| phase in `progress` .*?\n\n", page("docs/architecture.md"), re.MULTILINE | re.DOTALL)
    told = [phase for first, *_ in rows(table) for phase in re.findall(r"\w+", first)]
    assert told == ["planned", *IMPORT_PHASES, *VERIFY_PHASES, "verified", *READY_PHASES, *RESET_PHASES]


def test_every_code_that_a_page_names_is_one() -> None:
    """A code in running text looks like one: snake case with a prefix that codes have."""
    docs.declarations()
    for name in ("README.md", "docs/architecture.md", "docs/tracing.md"):
        named = set(re.findall(r"`((?:bootstrap|log|auth)_[a-z_]+)`", page(name)))
        assert named <= KINDS.keys(), name


def test_every_file_that_a_page_names_is_there() -> None:
    for name in ("README.md", "docs/architecture.md", "docs/tracing.md", "docs/errors.md"):
        text = page(name)
        folder = (PROJECT_ROOT / name).parent
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (folder / link).exists(), link
        for script in re.findall(r"\b(?:scripts|samples|tests)/[a-z0-9_.-]+\b", text):
            assert (PROJECT_ROOT / script).exists(), script
