"""Writes the parts of the documentation that the code decides: errors, routes, limits, span attributes.

Usage: python scripts/docs.py [--check]; with --check nothing is written, and the exit code is 1 if something is stale.
A generated part of a page stands between the comments `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from dcb_runtime import limits
from dcb_runtime.entry.routes import ROUTES, Who
from dcb_runtime.errors import KINDS, ErrorKind
from dcb_runtime.spans.attributes import ATTRIBUTES

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCES: Final = ROOT / "src"

SECTIONS: Final = {
    "entry": "The entry Worker",
    "bootstrap": "The import's coordinator",
    "rules": "Events, dumps and suids",
    "allocator": "The allocator",
    "tag": "Tags",
    "log": "The event log",
    "": "Everywhere",
}
"""Folder of ``dcb_runtime`` that declares a code, and the heading of its section, in the page's order."""

WHO: Final = {Who.ANYONE: "anyone", Who.APPLICATION: "application", Who.OPERATOR: "operator"}

LIMITS: Final = (
    ("SERVICE_ID_CHARACTERS_MAX", "characters of a service id", "service_id_invalid"),
    ("TAG_CHARACTERS_MAX", "characters of a tag", "tag_invalid"),
    ("TAGS_PER_EVENT_MAX", "tags of an event", "tags_too_many"),
    ("EVENT_TYPE_CHARACTERS_MAX", "characters of an event type", "event_type_invalid"),
    ("PAYLOAD_BYTES_MAX", "payload of an event, UTF-8", "payload_too_large"),
    ("PAYLOAD_DEPTH_MAX", "arrays and objects nested in one another", "payload_too_deep"),
    ("IMPORT_ID_CHARACTERS_MAX", "characters of an import id", "bootstrap_plan_invalid"),
    ("SOURCE_ID_CHARACTERS_MAX", "characters of an id of the source", "bootstrap_source_invalid"),
    ("INLINE_DUMP_BYTES_MAX", "a dump sent with plan", "dump_too_large"),
    ("BODY_BYTES_MAX", "any other body", "body_too_large"),
    ("WATERMARK_AHEAD_MS_MAX", "how far a dump's watermark may lie ahead of the clock", "bootstrap_watermark_ahead"),
    ("READ_PAGE_EVENTS_MAX", "events of an export's or a tag's page", "bootstrap_export_invalid, query_invalid"),
    ("READ_PAGE_BYTES_MAX", "bytes of such a page; it is cut there, never refused", ""),
    ("EXPORT_PAGE_EVENTS_DEFAULT", "events of an export's page, unless `pageSize` says otherwise", ""),
    ("TAG_PAGE_EVENTS_DEFAULT", "events of a tag's page, unless `limit` says otherwise", ""),
    ("TOKEN_CHARACTERS_MIN", "characters of a token, at least", "auth_not_configured"),
    ("TOKENS_PER_SECRET_MAX", "tokens in one secret", "auth_not_configured"),
    ("LEASE_MS", "how long the lease of an import outlives its last sign of life", "bootstrap_lease_held"),
    (
        "IMPORT_WAIT_MS",
        "how long import, verify and reset wait before they answer 202; a hook that the call runs is waited for",
        "",
    ),
    ("LOG_WAIT_MS", "how long an export waits for the log", "log_lagging"),
    ("OBJECTS_AT_A_TIME_MAX", "objects that one step of an import calls at a time", ""),
)
"""The limits that somebody outside can meet: constant, what it bounds, and the codes of a refusal if there are any."""

LIMITS_INSIDE: Final = frozenset(
    {
        "KIB",
        "MIB",
        "METADATA_CHARACTERS_MAX",
        "CHUNK_EVENTS_MAX",
        "CHUNK_BYTES_MAX",
        "PLAN_BODY_BYTES_MAX",
        "RELEASED_COMMANDS_MAX",
        "WAIT_STEP_MS_MIN",
        "WAIT_STEP_MS_MAX",
        "HOOK_RENEW_MS",
        "SAFE_INTEGER_MAX",
    }
)
"""The others: units, bounds of internal calls, and bounds of what is not there yet."""


@dataclass(frozen=True)
class Declaration:
    """Where an error kind is declared."""

    code: str
    constant: str
    module: str
    """Path of the module below ``dcb_runtime``."""

    @property
    def folder(self) -> str:
        """The part of the package that the module belongs to."""
        return self.module.rpartition("/")[0]


def declarations() -> list[Declaration]:
    """Every declaration of an error kind in the sources, in their order; importing them fills ``KINDS``."""
    package = SOURCES / "dcb_runtime"
    found = []
    for file in sorted(package.rglob("*.py")):
        own = [_declaration(node, file.relative_to(package)) for node in ast.parse(file.read_text("utf-8")).body]
        if declared := [one for one in own if one is not None]:
            import_module(".".join(file.relative_to(SOURCES).with_suffix("").parts))
            found += declared
    return found


def _declaration(node: ast.stmt, module: Path) -> Declaration | None:
    match node:
        case ast.Assign(
            targets=[ast.Name(id=constant)],
            value=ast.Call(func=ast.Name(id="ErrorKind"), args=[ast.Constant(value=str(code)), *_]),
        ):
            return Declaration(code, constant, module.as_posix())
        case _:
            return None


def errors_page() -> str:
    """The page of all codes, told apart by the part that raises them."""
    found = declarations()
    lines = [
        "# Errors",
        "",
        'Every refusal is `{"code", "error"}`, with more members where they help; `code` and the status are contract,',
        "`error` is the text below, with the place in front of it (`event <id>: ...`), never with content of an event.",
        "Codes of allocator, tags and log mostly reach an operator inside `progress.lastError` of the status, whose",
        "`error` ends with the reason that the part gave. 503 means: nothing is lost, ask again.",
        "",
        "Generated by `scripts/docs.py` from the register that raises them; the tests compare it.",
    ]
    for folder, heading in SECTIONS.items():
        rows = [(KINDS[one.code], one.module) for one in found if one.folder == folder]
        lines += ["", f"## {heading}", "", "| code | status | what it says | declared in |", "|---|---|---|---|"]
        lines += [_error_row(kind, module) for kind, module in rows]
    return "\n".join(lines) + "\n"


def _error_row(kind: ErrorKind, module: str) -> str:
    return f"| `{kind.code}` | {kind.status} | {_cell(kind.text)} | `{module}` |"


def routes_table() -> str:
    """The routes, their callers and their parameters."""
    rows = ["| who | route | what for |", "|---|---|---|"]
    for route in ROUTES:
        query = "?" + "&".join(f"{name}=" for name in route.query) if route.query else ""
        rows.append(f"| {WHO[route.who]} | `{route.method} {route.template}{query}` | {_cell(route.summary)} |")
    return "\n".join(rows)


def limits_table() -> str:
    """The limits that somebody outside can meet."""
    rows = ["| limit | value | refused with | constant |", "|---|---|---|---|"]
    for constant, meaning, code in LIMITS:
        value = limit_text(constant, getattr(limits, constant))
        codes = ", ".join(f"`{one}`" for one in code.split(", ") if one)
        rows.append(f"| {meaning} | {value} | {codes} | `{constant}` |")
    return "\n".join(rows)


def limit_text(constant: str, value: int) -> str:
    """A limit as people read it: the unit is the constant's own."""
    parts = constant.split("_")
    if "MS" in parts:
        return f"{value // 3_600_000} h" if value % 3_600_000 == 0 else f"{value / 1000:g} s"
    if "BYTES" in parts:
        for unit, name in ((limits.MIB, "MiB"), (limits.KIB, "KiB")):
            if value % unit == 0:
                return f"{value // unit} {name}"
        return f"{value:,} bytes"
    return f"{value:,}"


def spans_table() -> str:
    """The attributes of a span."""
    rows = ["| attribute | meaning |", "|---|---|"]
    return "\n".join(rows + [f"| `{name}` | {_cell(meaning)} |" for name, meaning in ATTRIBUTES.items()])


PAGES: Final[dict[str, Callable[[], str]]] = {"docs/errors.md": errors_page}
BLOCKS: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "routes": ("README.md", routes_table),
    "limits": ("README.md", limits_table),
    "spans": ("docs/tracing.md", spans_table),
}


def rendered() -> dict[Path, str]:
    """Every page that has generated parts, as it should be."""
    pages = {ROOT / name: page() for name, page in PAGES.items()}
    for name, (file, table) in BLOCKS.items():
        path = ROOT / file
        text = pages.get(path) or path.read_text(encoding="utf-8")
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise SystemExit(f"docs: {file} needs {begin} and {end}, each once")
        before, after = text.partition(begin)[0], text.partition(end)[2]
        pages[path] = f"{before}{begin}\n{table()}\n{end}{after}"
    return pages


def main(arguments: list[str]) -> int:
    """Write the pages, or name those that are stale."""
    stale = []
    for path, text in rendered().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
    for path in stale:
        print(f"docs: {path.relative_to(ROOT)} {'is stale' if arguments == ['--check'] else 'written'}")
        if arguments != ["--check"]:
            path.write_text(rendered()[path], encoding="utf-8")
    return int(bool(stale) and arguments == ["--check"])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
