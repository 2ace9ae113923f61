"""What the largest inline dump takes of the runtime's memory. The platform allows an isolate 128 MB."""

from __future__ import annotations

import json
from typing import Any

from tests.runtime.server import Server
from tests.support.dumps import dump_of, record
from tests.workerd.operators import FRESH, Operator

MIB = 1024 * 1024
DUMP_BYTES = 4 * MIB


def test_the_largest_inline_dump_is_imported_within_bounds() -> None:
    with Server() as server:
        operator = Operator(server, "largest")
        operator.status()
        idle = server.peak_memory()
        text, operator.dump = sized_dump("largest", operator.overview()["allocatorLineageId"], DUMP_BYTES)
        body = f'{{"importId":"{operator.import_id}","dump":{text},"targetEvidence":{json.dumps(FRESH)}}}'
        planned = operator.post("plan", body.encode())
        assert planned.status == 201, planned.json.get("code")
        operator.epoch = planned.json["leaseEpoch"]
        after_plan = server.peak_memory()
        operator.run()
        operator.settled()
        peak = server.peak_memory()
        figures = [f"{figure / MIB:.0f} MiB" for figure in (idle, after_plan, peak)]
        print(f"\npeak memory of workerd: idle {figures[0]}, 4 MiB planned {figures[1]}, imported {figures[2]}")
        operator.check()
        assert peak - idle < 512 * MIB


def sized_dump(service: str, lineage: str, size: int) -> tuple[str, dict[str, Any]]:
    """A valid dump whose text has exactly so many bytes, of events of about a kilobyte, and the dump itself."""
    payload = json.dumps({"text": "x" * 700})
    one = record(1, "all", "tag/1", payload=payload)
    count = (size - 100_000) // len(text_of(one))
    records = [record(number, "all", f"tag/{number % 10}", payload=payload) for number in range(1, count)]

    def filled(size: int) -> dict[str, Any]:
        last = record(count, "all", payload=json.dumps("x" * size))
        return dump_of([*records, last], service, lineage)

    dump = filled(size - len(text_of(filled(0))))
    text = text_of(dump)
    assert len(text) == size
    return text, dump


def text_of(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
