"""The one place where binds and rows cross the border to JavaScript."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pyodide.ffi import JsException, jsnull, to_js

from dcb_runtime.ports import Bind, Row

INTEGER_MAX: Final = 2**53 - 1
"""JavaScript's safe integers: a larger one would become a BigInt, which SQL bindings refuse."""

BINDS_MAX: Final = 100

_SQLITE_CODE: Final = re.compile(r"SQLITE_[A-Z_]+")


def to_binds(binds: Sequence[Bind]) -> list[Any]:
    """Binds as JavaScript values. Raises ``TypeError`` for what the platform would silently turn into text."""
    if len(binds) > BINDS_MAX:
        raise TypeError(f"{len(binds)} binds, the platform takes {BINDS_MAX}")
    return [_to_bind(bind) for bind in binds]


def _to_bind(bind: Bind) -> Any:
    if bind is None:
        return jsnull
    if isinstance(bind, str):
        return bind
    if isinstance(bind, bytes):
        return to_js(bind)
    if isinstance(bind, int) and not isinstance(bind, bool) and abs(bind) <= INTEGER_MAX:
        # Pyodide makes a BigInt of the largest safe integer already; as a float it becomes the same number.
        return bind if abs(bind) < INTEGER_MAX else float(bind)
    raise TypeError(f"cannot bind a {type(bind).__name__}")


def error_code(refused: JsException) -> str:
    """SQLite's code out of an error of the platform, ``unknown`` when it names none."""
    named = _SQLITE_CODE.search(str(refused))
    return named.group() if named else "unknown"


def to_row(values: Sequence[Any]) -> Row:
    """One row with SQL's NULL as ``None``."""
    return [None if value is jsnull else value for value in values]
