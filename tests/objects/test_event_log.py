"""The log's import side: whole chunks or nothing, the epoch in each statement, services apart, pages in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest

from dcb_runtime.errors import CodedError
from dcb_runtime.log.event_log import EventLog
from dcb_runtime.ports import Statement
from dcb_runtime.record_sql import FIELDS
from tests.support.dumps import record
from tests.support.sqlite import SqliteDatabase, stored_rows

LINEAGE = "lineage-1"
RECORDS = [record(1, "a"), record(2), record(3, "a", "b")]
OTHER_CONTENT: dict[str, Any] = {
    "eventId": record(77)["eventId"],
    "suid": record(77)["suid"],
    "payload": '{"n":1.0}',
    "eventType": "Other",
    "eventTags": ["b", "a"],
    "timestamp": "2023-11-14T22:13:20.0000Z",
    "causationId": "c",
    "correlationId": "c",
    "executedUser": "c",
}


class Log:
    """A log with one service, seen by one activation."""

    def __init__(self, database: SqliteDatabase | None = None) -> None:
        self.database = database or SqliteDatabase()
        self.log = EventLog(self.database)

    async def admit(
        self, first: int, records: Sequence[dict[str, Any]], epoch: int = 1, service: str = "orders"
    ) -> int:
        return await self.log.admit(service, "import-1", epoch, first, len(records), json.dumps(records))

    def rows(self) -> Any:
        return stored_rows(self.database.connection)


async def fenced() -> Log:
    log = Log()
    await log.log.fence("orders", LINEAGE, "import-1", 1)
    return log


async def refused(call: Awaitable[Any], code: str) -> CodedError:
    with pytest.raises(CodedError) as caught:
        await call
    assert caught.value.code == code
    return caught.value


def test_a_chunk_is_written_once_and_may_come_again_in_any_piece() -> None:
    async def scenario() -> None:
        log = await fenced()
        assert await log.admit(1, RECORDS[:2]) == 2
        assert await log.admit(1, RECORDS[:2]) == 0
        assert await log.admit(2, RECORDS[1:]) == 1
        assert await log.admit(2, RECORDS[1:2]) == 0
        assert (await log.log.head("orders"), await log.log.count("orders")) == (3, 3)
        assert await log.log.lineage("orders") == LINEAGE
        assert [found for _, found in await log.log.page("orders", 0, 9, 100, 10**6)] == RECORDS

    asyncio.run(scenario())


@pytest.mark.parametrize("name", sorted(OTHER_CONTENT))
def test_other_content_at_a_position_stops_the_whole_chunk(name: str) -> None:
    async def scenario() -> None:
        log = await fenced()
        await log.admit(1, RECORDS[:2])
        before = log.rows()
        changed = {**RECORDS[1], name: OTHER_CONTENT[name]}
        error = await refused(log.admit(2, [changed, RECORDS[2]]), "BOOTSTRAP_EVENT_IDENTITY_CONFLICT")
        assert error.fields == {"provider": "d1", "eventId": changed["eventId"]}
        assert log.rows() == before

    asyncio.run(scenario())


@pytest.mark.parametrize("event_id", [RECORDS[0]["eventId"], "0000000A-0000-4000-8000-00000000000A"])
def test_an_id_that_stands_elsewhere_stops_the_whole_chunk(event_id: str) -> None:
    async def scenario() -> None:
        log = await fenced()
        await log.admit(1, [RECORDS[0], {**RECORDS[1], "eventId": "0000000a-0000-4000-8000-00000000000a"}])
        before = log.rows()
        chunk = [RECORDS[2], {**record(4), "eventId": event_id}]
        await refused(log.admit(3, chunk), "BOOTSTRAP_EVENT_IDENTITY_CONFLICT")
        assert log.rows() == before

    asyncio.run(scenario())


def test_an_id_twice_in_one_chunk_stops_the_whole_chunk() -> None:
    async def scenario() -> None:
        log = await fenced()
        before = log.rows()
        chunk = [RECORDS[0], {**RECORDS[1], "eventId": RECORDS[0]["eventId"]}]
        await refused(log.admit(1, chunk), "BOOTSTRAP_EVENT_IDENTITY_CONFLICT")
        assert log.rows() == before

    asyncio.run(scenario())


@pytest.mark.parametrize("epoch", [0, 2])
def test_only_the_epoch_of_the_fence_writes_or_removes(epoch: int) -> None:
    async def scenario() -> None:
        log = await fenced()
        await log.admit(1, RECORDS[:1])
        before = log.rows()
        await refused(log.admit(2, RECORDS[1:], epoch), "log_fenced")
        await refused(log.log.remove("orders", "import-1", epoch, 10), "log_fenced")
        await refused(log.log.admit("orders", "import-2", 1, 2, 1, json.dumps(RECORDS[1:2])), "log_fenced")
        await log.log.close_import("orders", "import-1", epoch)
        assert log.rows() == before

    asyncio.run(scenario())


def test_a_fence_rises_and_never_falls() -> None:
    async def scenario() -> None:
        log = await fenced()
        await log.log.fence("orders", LINEAGE, "import-1", 1)
        await log.log.fence("orders", LINEAGE, "import-1", 3)
        await refused(log.log.fence("orders", LINEAGE, "import-1", 2), "log_fenced")
        await refused(log.log.fence("orders", LINEAGE, "import-2", 2), "log_fenced")
        assert await log.admit(1, RECORDS, 3) == 3

    asyncio.run(scenario())


def test_events_of_another_import_make_the_log_not_fresh_and_no_events_do_not() -> None:
    async def scenario() -> None:
        log = await fenced()
        await log.log.fence("orders", LINEAGE, "import-2", 2)
        await log.log.fence("orders", LINEAGE, "import-1", 3)
        await log.admit(1, RECORDS, 3)
        before = log.rows()
        await refused(log.log.fence("orders", LINEAGE, "import-2", 4), "log_not_fresh")
        await refused(log.log.fence("orders", "lineage-2", "import-1", 4), "lineage_mismatch")
        assert log.rows() == before

    asyncio.run(scenario())


def test_a_statement_of_an_old_epoch_that_commits_late_changes_nothing() -> None:
    async def scenario() -> None:
        log = await fenced()
        sent: list[list[Statement]] = []
        log.database.before = lambda statements: sent.append(list(statements))
        await log.admit(1, RECORDS)
        await log.log.remove("orders", "import-1", 1, 2)
        log.database.before = None
        await log.log.fence("orders", LINEAGE, "import-1", 2)
        assert await log.log.remove("orders", "import-1", 2, 10) == 0
        before = log.rows()
        for statements in sent:
            log.database.commit(statements)
        assert log.rows() == before

    asyncio.run(scenario())


def test_events_are_removed_in_pieces_from_the_end() -> None:
    async def scenario() -> None:
        log = await fenced()
        await log.admit(1, RECORDS)
        assert await log.log.remove("orders", "import-1", 1, 2) == 1
        assert [position for position, _ in await log.log.page("orders", 0, 9, 9, 10**6)] == [1]
        assert await log.log.remove("orders", "import-1", 1, 2) == 0
        assert await log.log.remove("orders", "import-1", 1, 2) == 0

    asyncio.run(scenario())


def test_a_closed_import_writes_no_more() -> None:
    async def scenario() -> None:
        log = await fenced()
        await log.admit(1, RECORDS[:1])
        for _ in range(2):
            await log.log.close_import("orders", "import-1", 1)
        await refused(log.admit(2, RECORDS[1:]), "log_fenced")
        await refused(log.log.remove("orders", "import-1", 1, 9), "log_fenced")
        await refused(log.log.fence("orders", LINEAGE, "import-1", 1), "log_fenced")

    asyncio.run(scenario())


def test_two_services_share_ids_and_nothing_else() -> None:
    async def scenario() -> None:
        log = await fenced()
        await log.log.fence("stock", "lineage-2", "import-1", 1)
        await log.admit(1, RECORDS)
        assert await log.admit(1, RECORDS[1:], service="stock") == 2
        assert await log.log.count("stock") == 2
        assert await log.log.remove("stock", "import-1", 1, 10) == 0
        assert (await log.log.count("orders"), await log.log.head("stock")) == (3, 0)
        assert await log.log.compared("stock", 0, 9) == "[]"

    asyncio.run(scenario())


def test_two_logs_that_make_the_tables_at_once_both_work() -> None:
    async def scenario() -> None:
        database = SqliteDatabase()

        async def later(stage: str, _: Sequence[Statement]) -> None:
            await asyncio.sleep(0)

        database.on_hop = later
        one, other = Log(database), Log(database)
        counts = await asyncio.gather(one.log.count("orders"), other.log.count("orders"))
        assert set(counts) == {0}
        await one.log.fence("orders", LINEAGE, "import-1", 1)
        assert await other.admit(1, RECORDS) == 3

    asyncio.run(scenario())


def test_pages_are_dense_and_cut_by_count_and_bytes() -> None:
    async def scenario() -> None:
        log = await fenced()
        records = [record(number, payload='"' + "x" * 1000 + '"') for number in range(1, 31)]
        await log.admit(1, records)
        assert [position for position, _ in await log.log.page("orders", 5, 9, 100, 10**6)] == [6, 7, 8, 9]
        assert [position for position, _ in await log.log.page("orders", 5, 30, 3, 10**6)] == [6, 7, 8]
        (size,) = {row[0] for row in log.database.connection.execute("SELECT bytes FROM dcb_event")}
        assert size > 1000
        for bytes_max, count in ((3 * size, 3), (3 * size - 1, 2), (1, 1)):
            page = await log.log.page("orders", 0, 30, 100, bytes_max)
            assert [position for position, _ in page] == list(range(1, count + 1))
        assert await log.log.page("orders", 30, 99, 100, 10**6) == []

    asyncio.run(scenario())


def test_the_texts_for_comparison_hold_each_field() -> None:
    async def scenario() -> None:
        log = await fenced()
        await log.admit(1, [{**RECORDS[0], **OTHER_CONTENT}])
        (compared,) = json.loads(await log.log.compared("orders", 0, 1))
        names = {"event_id": "eventId", "event_type": "eventType", "tags": "eventTags"}
        names |= {"causation_id": "causationId", "correlation_id": "correlationId", "executed_user": "executedUser"}
        whole = {**RECORDS[0], **OTHER_CONTENT}
        assert compared == [1, *(whole[names.get(name, name)] for name in FIELDS)]

    asyncio.run(scenario())
