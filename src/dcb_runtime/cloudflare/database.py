"""The shared database of the event log over D1."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from pyodide.ffi import JsException, to_js

from dcb_runtime.cloudflare.convert import error_code, to_binds, to_row
from dcb_runtime.cloudflare.world import log_line
from dcb_runtime.ports import DatabaseError, Row, Statement

BATCH_MS_MAX: Final = 60_000
"""How long a batch may take before its outcome counts as not known; D1 itself ends a query after 30 s."""


class D1Database:
    """The ``Database`` port: one ``batch`` is one transaction.

    D1 answers with objects, so the columns of one SELECT must have different names.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    async def batch(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run all statements in one transaction; one hop."""
        try:
            prepared = [self._raw.prepare(sql).bind(*to_binds(binds)) for sql, binds in statements]
            async with asyncio.timeout(BATCH_MS_MAX / 1000):
                results = await self._raw.batch(to_js(prepared))
        except TimeoutError:
            raise DatabaseError("timeout") from None
        except JsException as refused:
            code = error_code(refused)
            log_line(f"the log's database refused a batch: {code}")
            raise DatabaseError(code) from None
        return [[to_row(list(row.values())) for row in result.results.to_py()] for result in results]
