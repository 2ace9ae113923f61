"""The deployable worker under `wrangler dev`: a small import from end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.runtime.server import Server
from tests.support.dumps import record
from tests.workerd.operators import Operator

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = [record(number, "all", f"odd/{number % 2}") for number in range(1, 8)]


def test_a_small_import_under_wrangler_dev(tmp_path: Path) -> None:
    with Server(script="dev", state=tmp_path) as server:
        operator = Operator(server, "dev").plan(RECORDS)
        operator.run()
        operator.check()
