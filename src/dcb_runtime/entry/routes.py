"""The one table of routes: matching, documentation and tests all go by it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dcb_runtime.entry.http import HttpRefusal
from dcb_runtime.errors import METHOD_NOT_ALLOWED, NOT_FOUND


class Who(StrEnum):
    """Who may use a route; told by the first segment of its path."""

    ANYONE = "anyone"
    APPLICATION = "application"
    OPERATOR = "operator"


PREFIXES: Final = {"services": Who.APPLICATION, "operator": Who.OPERATOR}
"""Below these first segments credentials are checked before anything is looked up."""


@dataclass(frozen=True)
class Route:
    """One route. ``handler`` names the function that answers it, ``query`` its query parameters."""

    method: str
    template: str
    who: Who
    handler: str
    summary: str
    query: tuple[str, ...] = ()


@dataclass(frozen=True)
class Match:
    """A route with the raw, still percent-encoded segments that stand for its template's names."""

    route: Route
    segments: dict[str, str]


_LANE: Final = "/operator/bootstrap/{serviceId}"

ROUTES: Final = (
    Route("GET", "/health", Who.ANYONE, "health", "whether the Worker answers, and its version"),
    Route("GET", f"{_LANE}/status", Who.OPERATOR, "bootstrap_status", "the record of the import and its progress"),
    Route("POST", f"{_LANE}/plan", Who.OPERATOR, "bootstrap_plan", "plan the import of a dump into a fresh service"),
    Route("POST", f"{_LANE}/import", Who.OPERATOR, "bootstrap_import", "import, verify, run the hook and open"),
    Route("POST", f"{_LANE}/verify", Who.OPERATOR, "bootstrap_verify", "compare what was imported with the plan"),
    Route("POST", f"{_LANE}/abort", Who.OPERATOR, "bootstrap_abort", "stop the import; it can be resumed or reset"),
    Route("POST", f"{_LANE}/takeover", Who.OPERATOR, "bootstrap_takeover", "take over an import whose lease expired"),
    Route("POST", f"{_LANE}/reset", Who.OPERATOR, "bootstrap_reset", "delete what a failed import wrote"),
    Route("GET", f"{_LANE}/receipt", Who.OPERATOR, "bootstrap_receipt", "what was imported and compared"),
    Route("POST", f"{_LANE}/export", Who.OPERATOR, "bootstrap_export", "one page of the service's events as a dump"),
    Route("GET", "/operator/services/{serviceId}", Who.OPERATOR, "inspect_service", "what a service holds"),
    Route(
        "GET",
        "/operator/services/{serviceId}/tags/{tag}",
        Who.OPERATOR,
        "inspect_tag",
        "the events of one tag",
        ("after", "limit"),
    ),
)


def required(path: str) -> Who:
    """Who may ask below this path, whether or not there is such a route."""
    return PREFIXES.get(path.split("/", 2)[1] if path.startswith("/") else "", Who.ANYONE)


def find(method: str, path: str) -> Match:
    """The route of a request. Raises ``not_found``, or ``method_not_allowed`` with an ``Allow`` header."""
    matches = [Match(route, segments) for route in ROUTES if (segments := _match(route.template, path)) is not None]
    for match in matches:
        if match.route.method == method:
            return match
    if not matches:
        raise NOT_FOUND()
    allow = ", ".join(match.route.method for match in matches)
    raise HttpRefusal(METHOD_NOT_ALLOWED(), {"allow": allow})


def _match(template: str, path: str) -> dict[str, str] | None:
    names, segments = template.split("/"), path.split("/")
    if len(names) != len(segments):
        return None
    found: dict[str, str] = {}
    for name, segment in zip(names, segments, strict=True):
        if name.startswith("{") and segment:
            found[name.strip("{}")] = segment
        elif name != segment:
            return None
    return found
