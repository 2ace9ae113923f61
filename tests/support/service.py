"""One service under test: its coordinator, allocator and tags, and an operator who knows the routes."""

from __future__ import annotations

import json
from typing import Any, Final

from dcb_runtime.dispatch import target
from dcb_runtime.rules.scope import object_name, tag_object_name
from tests.support.dumps import dump_of, record
from tests.support.sqlite import SqliteStorage, stored_rows
from tests.support.world import Coordinator, World, parsed

FRESH: Final = {"bindingExists": False, "eventsExist": False}
IMPORT_ID: Final = "import-1"

Answer = tuple[int, dict[str, Any]]


def small() -> list[dict[str, Any]]:
    """Three events under two tags and one without: every kind of hop, each few times."""
    return [record(1, "a", "b"), record(2, "a"), record(3), record(4, "b")]


class Service:
    """A service with its objects as their callers see them."""

    def __init__(self, service_id: str = "orders", world: World | None = None) -> None:
        self.world = world or World()
        self.service_id = service_id
        self.coordinator = Coordinator(self.world, service_id)
        self.ids: dict[str, Any] = {}
        self.digest = ""

    async def allocator(self, path: str, body: Any = None) -> Answer:
        """Call the allocator: GET without a body, else POST."""
        name = object_name(self.service_id, "allocator", "allocator")
        return parsed(await self.world.call("allocator", name, target(path, service_id=self.service_id), _text(body)))

    async def tag(self, tag: str, path: str, body: Any = None, **query: str | int) -> Answer:
        """Call a tag: GET without a body, else POST."""
        return parsed(await self.tag_reply(tag, path, body, **query))

    async def tag_reply(self, tag: str, path: str, body: Any = None, **query: str | int) -> Any:
        """Call a tag; the answer as it is."""
        at = target(path, tag=tag, service_id=self.service_id, **query)
        return await self.world.call("tag", tag_object_name(self.service_id, tag), at, _text(body))

    def coordinator_storage(self) -> SqliteStorage:
        return self.world.storage("bootstrap", object_name(self.service_id, "bootstrap", "coordinator"))

    def allocator_storage(self) -> SqliteStorage:
        return self.world.storage("allocator", object_name(self.service_id, "allocator", "allocator"))

    def tag_storage(self, tag: str) -> SqliteStorage:
        return self.world.storage("tag", tag_object_name(self.service_id, tag))

    async def lineage(self) -> str:
        """The allocator's lineage, made now if it was not."""
        return str((await self.allocator("/state"))[1]["allocatorLineageId"])

    async def dump(self, records: list[dict[str, Any]]) -> dict[str, Any]:
        """A dump for this service."""
        return dump_of(records, self.service_id, await self.lineage())

    async def plan(self, records: list[dict[str, Any]], import_id: str = IMPORT_ID) -> Answer:
        """Plan an import of ``records`` and remember its ids."""
        dump = await self.dump(records)
        status, got = await self.post("/plan", {"importId": import_id, "dump": dump, "targetEvidence": FRESH})
        if status in (201, 202) and got["status"] == "PLANNED":
            self.ids = {"importId": import_id, "leaseEpoch": got["leaseEpoch"]}
            self.digest = dump["manifest"]["contentDigest"]
        return status, got

    async def post(self, route: str, body: Any) -> Answer:
        """POST to the coordinator."""
        return await self.coordinator.post(route, body)

    async def state(self) -> dict[str, Any]:
        """The coordinator's record."""
        return (await self.coordinator.get("/state"))[1]

    async def verified(self, records: list[dict[str, Any]]) -> None:
        """Plan, import and verify."""
        assert (await self.plan(records))[0] == 201
        assert (await self.post("/import", {**self.ids, "through": "verify"}))[0] == 202
        await self.world.settle()
        state = await self.state()
        assert (state["status"], state["verifiedImportId"]) == ("VERIFYING", IMPORT_ID), state["progress"]

    async def ready(self, records: list[dict[str, Any]]) -> None:
        """The whole way to READY, tags closed."""
        await self.verified(records)
        status, got = await self.post("/ready", self.ids)
        assert (status, got["status"]) == (200, "READY")
        await self.world.settle()

    async def failed(self, records: list[dict[str, Any]]) -> None:
        """Verified, then aborted."""
        await self.verified(records)
        assert (await self.post("/abort", self.ids))[1]["status"] == "FAILED"

    async def reset(self) -> None:
        """From FAILED back to EMPTY."""
        await self.post("/reset", self.ids)
        await self.world.settle()
        assert (await self.state())["status"] == "EMPTY"

    async def receipt(self) -> dict[str, Any]:
        """The receipt without what two runs may differ in."""
        receipt = (await self.coordinator.get("/receipt"))[1]
        return {name: value for name, value in receipt.items() if name not in ("leaseEpoch", "times")}

    def data(self) -> dict[str, Any]:
        """What the import has written into index, tags and log, without epochs and times."""
        index = self.allocator_storage().rows()
        contents: dict[str, Any] = {
            "index": {name: index.get(name, []) for name in ("event", "event_tag", "event_type", "tag")},
            "log": stored_rows(self.world.database.connection).get("dcb_event", []),
        }
        for (actor_class, name), storage in sorted(self.world.storages.items()):
            if actor_class == "tag":
                rows = storage.rows()
                contents[name] = {table: rows.get(table, []) for table in ("event", "head")}
        return contents

    def everything(self) -> dict[str, Any]:
        """All rows of all objects and of the log."""
        stored: dict[str, Any] = {
            f"{actor_class} {name}": storage.rows() for (actor_class, name), storage in self.world.storages.items()
        }
        return {**stored, "log": stored_rows(self.world.database.connection)}


def _text(body: Any) -> str | None:
    return body if body is None or isinstance(body, str) else json.dumps(body)
