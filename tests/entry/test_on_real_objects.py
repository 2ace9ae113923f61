"""The operator's lane over the real objects: an import from plan to READY, looked at and exported again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dcb_runtime.entry.app import Entry
from dcb_runtime.entry.auth import Secrets
from dcb_runtime.entry.hook import Hooks
from dcb_runtime.limits import LEASE_MS
from dcb_runtime.rules.dump_v2 import ChainDigest, check_contents_v2, parse_manifest_v2
from dcb_runtime.spans.none import NO_SPANS
from tests.entry.doubles import OPERATOR, Got, request
from tests.support.dumps import dump_of, flights
from tests.support.world import Coordinator, World, lose

EVENTS = flights(40)


class Yielding:
    """The world's timer, which also lets other tasks run."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def sleep(self, wait_ms: int) -> None:
        await asyncio.sleep(0)
        await self.world.sleep(wait_ms)
        await asyncio.sleep(0)


class Operator:
    """An operator's calls to an entry Worker over real objects in memory."""

    def __init__(self, hook: Callable[..., Any] | None = None) -> None:
        self.world = World()
        self.entry = Entry(
            peers=self.world,
            log=self.world.log,
            secrets=Secrets(None, OPERATOR),
            clock=self.world.clock,
            timer=Yielding(self.world),
            hooks=Hooks(hook),
            spans=NO_SPANS,
            log_line=self.world.log_lines.append,
        )
        self.ids: dict[str, Any] = {}

    async def get(self, path: str) -> Got:
        return Got(await self.entry.handle(request("GET", f"/operator/{path}", b"", self._headers())))

    async def post(self, route: str, body: Any, service_id: str = "orders") -> Got:
        path = f"/operator/bootstrap/{service_id}/{route}"
        return Got(await self.entry.handle(request("POST", path, json.dumps(body), self._headers())))

    async def plan(self) -> dict[str, Any]:
        lineage = (await self.get("services/orders")).json["allocatorLineageId"]
        dump = dump_of(EVENTS, "orders", lineage)
        evidence = {"bindingExists": False, "eventsExist": False}
        got = await self.post("plan", {"importId": "import-1", "dump": dump, "targetEvidence": evidence})
        assert got.status == 201, got.json
        self.ids = {"importId": "import-1", "leaseEpoch": got.json["leaseEpoch"]}
        return dump

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {OPERATOR}"}


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_from_plan_to_ready_and_out_again() -> None:
    async def scenario() -> None:
        operator = Operator()
        dump = await operator.plan()
        assert (await operator.get("services/orders")).json["mode"] == "importing"
        assert (await operator.post("export", {"targetServiceId": "copy"})).code == (409, "bootstrap_in_progress")

        ready = await operator.post("import", operator.ids)
        assert (ready.status, ready.json["status"]) == (200, "READY")
        again = await operator.post("import", {**operator.ids, "dump": dump})
        assert (again.status, again.json["status"]) == (200, "READY")
        receipt = (await operator.get("bootstrap/orders/receipt")).json
        assert receipt["importId"] == "import-1"

        service = (await operator.get("services/orders")).json
        assert (service["mode"], service["head"], service["eventCount"]) == ("open", 40, 40)
        assert service["watermark"] == EVENTS[-1]["suid"]
        assert service["bootstrap"]["status"] == "READY"

        records, cursor = [], None
        while True:
            page = (await operator.post("export", {"targetServiceId": "copy", "pageSize": 7, "cursor": cursor})).json
            records += page["page"]
            cursor = page["cursor"]
            if page["complete"]:
                break
        assert records == EVENTS
        manifest = parse_manifest_v2(page["manifest"])
        chain = ChainDigest()
        for record in records:
            chain.add(record)
        tags = {tag for record in records for tag in record["eventTags"]}
        check_contents_v2(manifest, len(tags), records[-1]["suid"], chain.state)
        assert manifest["source"]["lineageId"] == service["allocatorLineageId"]
        assert manifest["target"]["allocatorLineageId"] is None

    run(scenario())


def test_a_tag_is_shown_in_pages_with_its_data_as_it_was() -> None:
    async def scenario() -> None:
        operator = Operator()
        await operator.plan()
        await operator.post("import", operator.ids)
        tag = EVENTS[0]["eventTags"][0]
        mine = [(place, event) for place, event in enumerate(EVENTS, 1) if tag in event["eventTags"]]
        seen, after = [], 0
        while True:
            got = await operator.get(f"services/orders/tags/{tag.replace('/', '%2F')}?after={after}&limit=3")
            assert got.status == 200
            assert got.json["mode"] == "open"
            assert (got.json["version"], got.json["head"]) == (len(mine), mine[-1][0])
            for event in got.json["events"]:
                seen.append((event["position"], event["id"]))
            first = got.json["events"][0]
            assert EVENTS[first["position"] - 1]["payload"] in got.response.body
            if "next" not in got.json:
                break
            after = got.json["next"]
        assert seen == [(place, event["eventId"]) for place, event in mine]

    run(scenario())


def test_looking_creates_a_lineage_and_nothing_else() -> None:
    async def scenario() -> None:
        operator = Operator()
        tag = await operator.get("services/orders/tags/never:used")
        assert (tag.status, tag.json["version"], tag.json["events"]) == (200, 0, [])
        assert (await operator.get("bootstrap/orders/status")).json["status"] == "EMPTY"
        assert (await operator.get("bootstrap/orders/receipt")).code == (404, "bootstrap_receipt_missing")
        tables = "SELECT count(*) FROM sqlite_master"
        assert [storage.exec(tables)[0][0] for storage in operator.world.storages.values()] == [0, 0, 0]
        service = (await operator.get("services/orders")).json
        assert service["allocatorLineageId"]
        assert (service["mode"], service["head"], service["bootstrap"]["status"]) == ("open", 0, "EMPTY")

    run(scenario())


def test_an_export_for_a_service_that_is_used_here_names_its_lineage() -> None:
    async def scenario() -> None:
        operator = Operator()
        other = (await operator.get("services/copy")).json["allocatorLineageId"]
        page = (await operator.post("export", {"targetServiceId": "copy"})).json
        assert page["manifest"]["target"] == {"serviceId": "copy", "allocatorLineageId": other}

    run(scenario())


def test_a_hook_that_fails_is_run_again_by_the_next_call() -> None:
    calls: list[tuple[Any, ...]] = []

    async def hook(*arguments: Any) -> None:
        calls.append(arguments)
        await asyncio.sleep(0)
        if len(calls) == 1:
            raise ValueError("not yet")

    async def scenario() -> None:
        operator = Operator(hook)
        dump = await operator.plan()
        assert (await operator.post("import", operator.ids)).code == (503, "bootstrap_read_model_rebuild_failed")
        assert (await operator.get("bootstrap/orders/status")).json["status"] == "VERIFYING"
        assert (await operator.get("services/orders")).json["mode"] == "importing"
        assert (await operator.post("import", operator.ids)).json["status"] == "READY"
        assert calls == [("orders", "import-1", 1, dump["manifest"])] * 2

    run(scenario())


def test_two_calls_at_once_run_the_hook_once() -> None:
    calls: list[int] = []

    async def hook(*_: Any) -> None:
        calls.append(1)
        for _step in range(50):
            await asyncio.sleep(0)

    async def scenario() -> None:
        operator = Operator(hook)
        await operator.plan()
        both = await asyncio.gather(*(operator.post("import", operator.ids) for _ in range(2)))
        assert sorted(got.status for got in both) == [200, 202]
        assert calls == [1]

    run(scenario())


def test_a_call_whose_claim_went_to_another_one_does_not_make_ready() -> None:
    operator: Operator

    async def hook(*_: Any) -> None:
        operator.world.clock.ms += LEASE_MS + 1
        status, _claim = await Coordinator(operator.world, "orders").post("/hook/claim", operator.ids)
        assert status == 200

    async def scenario() -> None:
        nonlocal operator
        operator = Operator(hook)
        await operator.plan()
        assert (await operator.post("import", operator.ids)).code == (409, "bootstrap_hook_lost")
        assert (await operator.get("services/orders")).json["mode"] == "importing"

    run(scenario())


def test_abort_reset_and_a_new_plan() -> None:
    async def scenario() -> None:
        operator = Operator()
        await operator.plan()
        assert (await operator.post("abort", operator.ids)).json["status"] == "FAILED"
        reset = await operator.post("reset", operator.ids)
        assert (reset.status, reset.json["status"]) == (200, "EMPTY")
        assert (await operator.get("services/orders")).json["mode"] == "open"
        before = operator.ids["leaseEpoch"]
        await operator.plan()
        assert operator.ids["leaseEpoch"] > before
        assert (await operator.post("import", operator.ids)).json["status"] == "READY"

    run(scenario())


def test_another_epoch_or_import_is_refused() -> None:
    async def scenario() -> None:
        operator = Operator()
        await operator.plan()
        for other in ({"leaseEpoch": 2}, {"importId": "import-2"}):
            for route in ("import", "verify", "abort"):
                got = await operator.post(route, {**operator.ids, **other})
                assert got.code == (409, "bootstrap_epoch_rejected")

    run(scenario())


def test_verify_needs_an_import() -> None:
    async def scenario() -> None:
        operator = Operator()
        await operator.plan()
        assert (await operator.post("verify", operator.ids)).code == (409, "bootstrap_state_rejected")

    run(scenario())


@pytest.mark.parametrize("kind", ["request", "reply"])
@pytest.mark.parametrize("route", ["/plan", "/import", "/state", "/hook/claim", "/hook/release", "/ready"])
def test_whatever_is_lost_the_same_call_again_ends_ready(route: str, kind: str) -> None:
    failures = [ValueError("once")]

    def hook(*_: Any) -> None:
        if failures:
            raise failures.pop()

    async def scenario() -> None:
        operator = Operator(hook)
        await operator.plan()
        setattr(operator.world, f"lose_{kind}", lose(1, route))
        answers = []
        for _ in range(10):
            got = await operator.post("import", operator.ids)
            answers.append(got.status)
            if got.status == 200:
                break
            assert got.status in (202, 503)
            await Yielding(operator.world).sleep(LEASE_MS // 2)
        assert got.json["status"] == "READY"
        operator.world.lose_request = operator.world.lose_reply = None
        service = (await operator.get("services/orders")).json
        assert (service["mode"], service["head"]) == ("open", len(EVENTS))

    run(scenario())
