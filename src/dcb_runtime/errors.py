"""Errors that leave the service: a code, a status and a text that says what to do.

Every kind is declared once, beside the rule that raises it, and registers itself in ``KINDS``; the
documentation's table and the tests are checked against that register. Expected failures travel
between objects as answers (``{"code", "error", ...}``), never as exceptions: an exception that crosses
an RPC border loses its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KINDS: dict[str, ErrorKind] = {}


class CodedError(Exception):
    """One refusal: ``code`` and ``status`` are contract, ``text`` is for people, ``fields`` are extra members."""

    def __init__(self, code: str, status: int, text: str, fields: dict[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.status = status
        self.text = text
        self.fields = fields or {}

    def body(self) -> dict[str, Any]:
        """The JSON body of the answer: the extra members first, so that they can never replace the code."""
        return {**self.fields, "code": self.code, "error": self.text}


@dataclass(frozen=True)
class ErrorKind:
    """A code with its default status and its text; calling it makes the error to raise."""

    code: str
    status: int
    text: str

    def __post_init__(self) -> None:
        if self.code in KINDS:
            raise ValueError(f"error code {self.code} is declared twice")
        KINDS[self.code] = self

    def __call__(self, detail: str = "", *, status: int | None = None, **fields: Any) -> CodedError:
        """Make the error; ``detail`` names the place (never a payload, a token or a stack trace)."""
        text = f"{detail}: {self.text}" if detail else self.text
        return CodedError(self.code, self.status if status is None else status, text, fields)


NOT_FOUND = ErrorKind("not_found", 404, "there is no such route; the README lists the routes")
METHOD_NOT_ALLOWED = ErrorKind("method_not_allowed", 405, "this route takes another method; see the Allow header")
BODY_INVALID = ErrorKind("body_invalid", 400, "the body must be one JSON document in UTF-8 of the documented shape")
BODY_TOO_LARGE = ErrorKind("body_too_large", 413, "the body is larger than this route takes; send less at a time")
QUERY_INVALID = ErrorKind("query_invalid", 400, "a query parameter is unknown, repeated or out of its range")
INTERNAL_ERROR = ErrorKind(
    "internal_error", 500, "the service failed on its side; nothing is known to be lost, ask again or read the logs"
)
LINEAGE_MISMATCH = ErrorKind(
    "lineage_mismatch",
    409,
    "the data belongs to another lineage of this service (lost or re-created); find out which one is right",
)
