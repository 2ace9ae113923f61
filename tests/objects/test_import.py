"""A whole import: what index, tags and log hold afterwards, whatever the shape of the dump."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dcb_runtime.limits import CHUNK_BYTES_MAX, CHUNK_EVENTS_MAX, LEASE_MS
from tests.support.dumps import flights, record
from tests.support.service import Service, small
from tests.support.world import START_MS, Call

EMOJI = "\U0001f600 %2F/%"

DUMPS: dict[str, list[dict[str, Any]]] = {
    "no event": [],
    "one event": [record(1, "a")],
    "one without tags": [record(1)],
    "small": small(),
    "awkward tags": [record(1, "a/b", "100%", EMOJI), record(2, "a%2Fb"), record(3, "A", "a", "ä", " ")],
    "an event in 32 tags": [record(1, *(f"t{n}" for n in range(32))), record(2, "t31")],
    "more tags than run at a time": [record(n, f"t{n}", "all") for n in range(1, 21)],
    "one tag in several chunks": [record(n, "a") for n in range(1, 2 * CHUNK_EVENTS_MAX + 2)],
    "chunks cut by bytes": [record(n, "a", payload=json.dumps("x" * 150_000)) for n in range(1, 18)],
    "awkward contents": [
        record(1, "a", event_type="\u0001 \"\\' \U0001f600\u2028", payload='{"a":1.0,"a":[1e400,-0.0]}'),
        record(2, "a", "b", event_type="x" * 256, payload='"\\u0000\\ud83d\\ude00\\/"'),
        record(3, "b", event_type="%s ? '--", payload='\n[ {"b" : null} ,\t12345678901234567890 ]'),
    ],
    "real events": flights(300),
}


def shown(position: int, whole: dict[str, Any]) -> dict[str, Any]:
    """A record as a tag's page shows it."""
    return {
        "position": position,
        "suid": whole["suid"],
        "id": whole["eventId"],
        "type": whole["eventType"],
        "tags": whole["eventTags"],
        "data": json.loads(whole["payload"]),
        "timestamp": whole["timestamp"],
        "metadata": {name: whole[name] for name in ("causationId", "correlationId", "executedUser")},
    }


async def tag_events(service: Service, tag: str) -> list[dict[str, Any]]:
    """All events of a tag, page by page."""
    found: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        page = (await service.tag(tag, "/events", after=after, limit=1000))[1]
        found += page["events"]
        after = page.get("next")
    return found


@pytest.mark.parametrize("name", sorted(DUMPS))
def test_tags_index_and_log_hold_exactly_the_events(name: str) -> None:
    records = DUMPS[name]
    numbered = list(enumerate(records, start=1))
    tags = sorted({tag for whole in records for tag in whole["eventTags"]})

    async def scenario() -> None:
        service = Service()
        await service.ready(records)
        for tag in tags:
            events = [shown(position, whole) for position, whole in numbered if tag in whole["eventTags"]]
            assert await tag_events(service, tag) == events
            state = (await service.tag(tag, "/state"))[1]
            assert (state["version"], state["headPosition"]) == (len(events), events[-1]["position"])
            assert state["head"] == events[-1]["suid"]
            assert state["bootstrapAdmission"]["closed"]
        _, allocator = await service.allocator("/state")
        assert (allocator["mode"], allocator["head"]) == ("open", len(records))
        assert (allocator["eventCount"], allocator["tagCount"]) == (len(records), len(tags))
        assert allocator["allocatedWatermark"] == (records[-1]["suid"] if records else None)
        log = await service.world.log.page("orders", 0, len(records), 10**4, 10**9)
        assert log == numbered
        assert sum(key[0] == "tag" for key in service.world.storages) == len(tags)

    asyncio.run(scenario())


def test_the_receipt_tells_what_was_moved_and_compared() -> None:
    async def scenario() -> None:
        service = Service()
        status, answer = await service.coordinator.get("/receipt")
        assert (status, answer["code"]) == (404, "bootstrap_receipt_missing")
        await service.verified(small())
        assert (await service.coordinator.get("/receipt"))[0] == 404
        _, record_ = await service.post("/ready", service.ids)
        assert record_["readyAt"] is not None
        receipt = (await service.coordinator.get("/receipt"))[1]
        times = receipt.pop("times")
        assert sorted(times) == ["importedAt", "plannedAt", "readyAt", "verifiedAt"]
        assert all(times.values())
        chain = receipt.pop("chainDigest")
        assert (chain[:7], len(chain)) == ("sha256:", 71)
        manifest = (await service.dump(small()))["manifest"]
        assert receipt == {
            "serviceId": "orders",
            "importId": "import-1",
            "leaseEpoch": 1,
            "allocatorLineageId": await service.lineage(),
            "source": manifest["source"],
            "contentDigest": manifest["contentDigest"],
            "eventCount": 4,
            "tagCount": 2,
            "highWatermark": small()[-1]["suid"],
            "compared": {
                "index": {"events": 4, "tags": 0},
                "indexTags": {"events": 4, "tags": 0},
                "tags": {"events": 4, "tags": 2},
                "log": {"events": 4, "tags": 0},
            },
        }

    asyncio.run(scenario())


def test_staged_rows_go_after_ready_and_the_record_stays() -> None:
    async def scenario() -> None:
        service = Service()
        await service.verified(small())
        assert len(service.coordinator_storage().rows()["staged_event"]) == 4
        await service.post("/ready", service.ids)
        await service.world.settle()
        rows = service.coordinator_storage().rows()
        assert [rows[table] for table in ("staged_event", "staged_tag", "staged_event_tag", "hook_claim")] == [[]] * 4
        state = await service.state()
        assert (state["status"], state["leaseUntil"], state["failure"]) == ("READY", None, None)
        assert state["manifest"]["eventCount"] == 4
        assert state["progress"]["phase"] == "done"

    asyncio.run(scenario())


def test_no_call_carries_more_than_a_chunk_and_at_most_eight_run_at_once() -> None:
    async def scenario() -> None:
        service = Service()
        running: list[str] = []
        most = [0]

        async def watch(stage: str, call: Call) -> None:
            if call.actor_class == "tag":
                (running.append if stage == "request" else running.remove)(call.name)
                most[0] = max(most[0], len(running))
                await asyncio.sleep(0)

        service.world.on_hop = watch
        records = [record(n, f"t{n % 20}", payload=json.dumps("x" * 100_000)) for n in range(1, 31)]
        await service.ready(records)
        bodies = [call.body for call in service.world.calls if call.route.endswith("/admit") and call.body]
        assert max(len(body.encode()) for body in bodies) < CHUNK_BYTES_MAX + 10_000
        assert most == [8]

    asyncio.run(scenario())


def test_calls_grow_with_events_and_tags_not_with_their_product() -> None:
    async def scenario() -> None:
        service = Service()
        await service.ready([record(n, "a", "b", "c") for n in range(1, 2001)])
        admits = [call for call in service.world.calls if call.route == "/bootstrap/admit"]
        assert len(admits) == 3 * 2

    asyncio.run(scenario())


def test_progress_counts_and_tells_what_runs() -> None:
    async def scenario() -> None:
        service = Service()
        seen: list[tuple[str, int, int, int, int]] = []

        async def watch(_: str, call: Call) -> None:
            if call.actor_class != "bootstrap":
                progress = (await service.state())["progress"]
                events, tags = progress["events"], progress["tags"]
                seen.append((progress["phase"], events["done"], events["total"], tags["done"], tags["total"]))

        await service.plan(small())
        progress = (await service.state())["progress"]
        assert (progress["running"], progress["blocked"], progress["lastError"]) == (False, False, None)
        status, started = await service.post("/import", {**service.ids, "through": "verify"})
        assert (status, started["status"], started["progress"]["running"]) == (202, "IMPORTING", True)
        service.world.on_hop = watch
        await service.world.settle()
        service.world.on_hop = None
        assert [phase for phase, *_ in dict.fromkeys((row[0],) for row in seen)] == [
            "index",
            "seed",
            "tags",
            "verify_index",
            "verify_index_tags",
            "verify_tags",
        ]
        for phase, events_done, events, tags_done, tags in seen:
            assert 0 <= events_done <= events == 4, phase
            assert 0 <= tags_done <= tags == 2, phase
        progress = (await service.state())["progress"]
        assert (progress["phase"], progress["running"], progress["events"]) == (
            "verified",
            False,
            {"done": 4, "total": 4},
        )

    asyncio.run(scenario())


def test_progress_renews_the_lease() -> None:
    async def scenario() -> None:
        service = Service()
        await service.plan(small())
        service.world.clock.ms = START_MS + 20_000
        await service.post("/import", service.ids)
        assert (await service.state())["leaseUntil"] == START_MS + 20_000 + LEASE_MS
        service.world.clock.ms += 25_000
        await service.world.run_due_alarms()
        assert (await service.state())["leaseUntil"] == START_MS + 45_000 + LEASE_MS

    asyncio.run(scenario())


def test_after_ready_nothing_is_admitted_any_more() -> None:
    async def scenario() -> None:
        service = Service()
        await service.ready(small())
        for call in [call for call in service.world.calls if call.route == "/bootstrap/admit"]:
            answer = await service.world.call(call.actor_class, call.name, call.path, call.body)
            assert json.loads(answer.text)["reason"] == "bootstrap_closed_permanently"

    asyncio.run(scenario())


def test_two_services_take_the_same_events_at_once_and_share_nothing() -> None:
    async def scenario() -> None:
        orders = Service()
        stock = Service("stock", orders.world)
        for service in (orders, stock):
            await service.plan(small())
            await service.post("/import", {**service.ids, "through": "verify"})
        await orders.world.settle()
        for service in (orders, stock):
            assert (await service.post("/ready", service.ids))[0] == 200
            log = await service.world.log.page(service.service_id, 0, 9, 100, 10**6)
            assert log == list(enumerate(small(), start=1))
        assert await orders.lineage() != await stock.lineage()

    asyncio.run(scenario())
