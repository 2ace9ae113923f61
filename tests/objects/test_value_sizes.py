"""No value outgrows the platform's 2 MB, whatever the dump: the databases of these tests enforce it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dcb_runtime.limits import SOURCE_ID_CHARACTERS_MAX
from tests.support.dumps import dump_of, record
from tests.support.service import FRESH, Service

LONG = "\U0001f600" * 250
QUOTES = '"' * 250
ESCAPED = '{"text":"' + '\\"' * 90_000 + '"}'


def many(prefix: str) -> list[str]:
    return [f"{prefix}{number:06d}" for number in range(32)]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([record(n, *many(LONG)) for n in range(1, 110)], id="32 tags of 1 KiB each"),
        pytest.param([record(n, LONG, payload="0") for n in range(1, 2401)], id="one long tag on all events"),
        pytest.param([record(n, *many(QUOTES), payload="0") for n in range(1, 201)], id="tags full of quotes"),
        pytest.param([record(n, "a", payload=ESCAPED) for n in range(1, 11)], id="payloads full of escapes"),
        pytest.param(
            [record(n, "a", event_type="\u0001" * 256, payload="0") for n in range(1, 1200)],
            id="types full of control characters",
        ),
    ],
)
def test_a_dump_of_awkward_sizes_becomes_ready(records: list[dict[str, Any]]) -> None:
    async def scenario() -> None:
        service = Service()
        await service.verified(records)
        assert (await service.post("/ready", service.ids))[1]["status"] == "READY"
        assert (await service.coordinator.get("/receipt"))[1]["eventCount"] == len(records)

    asyncio.run(scenario())


@pytest.mark.parametrize(("characters", "expected"), [(0, 201), (1, 400)])
@pytest.mark.parametrize("member", ["serviceId", "lineageId"])
def test_a_sources_ids_have_a_limit(member: str, characters: int, expected: int) -> None:
    async def scenario() -> None:
        service = Service()
        source = {"serviceId": "old", "lineageId": "old"} | {member: "x" * (SOURCE_ID_CHARACTERS_MAX + characters)}
        dump = dump_of([record(1, "a")], "orders", await service.lineage(), source)
        status, answer = await service.post("/plan", {"importId": "i", "dump": dump, "targetEvidence": FRESH})
        assert status == expected
        assert answer.get("code") == (None if expected == 201 else "bootstrap_source_invalid")

    asyncio.run(scenario())
