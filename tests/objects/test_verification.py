"""Verification compares what is stored, field by field: whatever was tampered with is found and named."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dcb_runtime.record_sql import FIELDS
from tests.support.dumps import record
from tests.support.service import Service

RECORDS = [record(1, "a", "b"), record(2, "a"), record(3), record(4, "b", "a", event_type="Other")]
TAG_MISMATCH = "bootstrap_verify_tag_mismatch"
TAG_MISSING = "bootstrap_verify_tag_missing"
INDEX_MISMATCH = "bootstrap_verify_index_mismatch"
STORE_MISMATCH = "bootstrap_verify_store_mismatch"

OTHER = {
    "event_id": "'00000000-0000-4000-8000-0000000000ff'",
    "suid": "replace(suid, '2', '3')",
    "event_type": "'Forged'",
    "payload": "'{\"n\":1.0}'",
    "tags": "json_insert(tags, '$[#]', 'z')",
    "timestamp": "'2023-11-14T22:13:20.0000Z'",
    "causation_id": "''",
    "correlation_id": "'SerializedCommit'",
    "executed_user": "'null'",
}
"""For each field another value that is as plausible."""

COPY = ", ".join(["bytes", *(name for name in FIELDS if name not in ("event_id", "suid"))])
EXTRA_IN_TAG = f"""INSERT INTO event (version, position, event_id, suid, {COPY})
    SELECT {{version}}, {{position}}, 'x', suid || '0', {COPY} FROM event WHERE version = 1"""
EXTRA_IN_LOG = f"""INSERT INTO dcb_event (service, position, event_id, suid, {COPY})
    SELECT service, {{position}}, 'x', suid, {COPY} FROM dcb_event WHERE position = 1"""

IN_TAG = [
    *(f"UPDATE event SET {name} = {value} WHERE version = 2" for name, value in OTHER.items()),
    'UPDATE event SET tags = \'["b","a"]\' WHERE version = 1',
    "UPDATE event SET position = 3 WHERE version = 2",
    "UPDATE event SET version = 7 WHERE version = 3",
    "DELETE FROM event WHERE version = 3",
    "DELETE FROM event",
    "UPDATE head SET version = 2",
    "UPDATE head SET position = 9",
    "UPDATE head SET suid = ''",
    "UPDATE identity SET allocator_lineage_id = 'another'",
    EXTRA_IN_TAG.format(version=4, position=5),
    EXTRA_IN_TAG.format(version=9, position=99),
    EXTRA_IN_TAG.format(version=0, position=0),
]
IN_INDEX = [
    "UPDATE event SET event_id = x'00000000000040008000000000000fff' WHERE position = 3",
    "UPDATE event SET suid = '1' || substr(suid, 2) WHERE position = 3",
    "UPDATE event SET type_id = 3 - type_id WHERE position = 3",
    "UPDATE event SET position = 7 WHERE position = 4",
    "DELETE FROM event WHERE position = 3",
    "UPDATE event_type SET name = 'Forged' WHERE type_id = 1",
    "UPDATE event_tag SET version = 9 WHERE position = 4 AND tag_id = 1",
    "UPDATE event_tag SET position = 3 WHERE position = 4 AND tag_id = 1",
    "DELETE FROM event_tag WHERE position = 4 AND tag_id = 2",
    "INSERT INTO event_tag VALUES (1, 3, 4)",
    "UPDATE tag SET name = 'z' WHERE tag_id = 2",
    "UPDATE tag SET version = version + 1 WHERE tag_id = 2",
    "UPDATE tag SET head = head - 1 WHERE tag_id = 1",
    "INSERT INTO tag VALUES (9, 'z', 0, 0)",
    "INSERT INTO event VALUES (5, x'00', '9', 1)",
    "INSERT INTO event VALUES (0, x'00', '0', 1)",
    "UPDATE sequence SET head = 3",
    "UPDATE sequence SET watermark = NULL",
    "UPDATE identity SET allocator_lineage_id = 'another'",
]
IN_LOG = [
    *(f"UPDATE dcb_event SET {name} = {value} WHERE position = 2" for name, value in OTHER.items()),
    "UPDATE dcb_event SET position = 5 WHERE position = 4",
    "DELETE FROM dcb_event WHERE position = 3",
    "UPDATE dcb_service SET allocator_lineage_id = 'another'",
    EXTRA_IN_LOG.format(position=5),
    EXTRA_IN_LOG.format(position=0),
]


def verify_after(tamper: str, where: str) -> tuple[dict[str, Any], Service]:
    """Import, tamper, verify; the record, and the service."""

    async def scenario() -> tuple[dict[str, Any], Service]:
        service = Service()
        assert (await service.plan(RECORDS))[0] == 201
        await service.post("/import", service.ids)
        await service.world.settle()
        connection = service.world.database.connection
        if where == "index":
            connection = service.allocator_storage().connection
        if where == "tag":
            connection = service.tag_storage("a").connection
        before = connection.total_changes
        connection.execute(tamper)
        assert connection.total_changes > before
        assert (await service.post("/verify", service.ids))[0] == 202
        await service.world.settle()
        return await service.state(), service

    return asyncio.run(scenario())


def assert_found(state: dict[str, Any], code: str, names: str) -> None:
    error = state["progress"]["lastError"]
    assert error is not None
    assert error["code"] == code
    assert names in error["error"]
    assert (state["status"], state["progress"]["blocked"]) == ("VERIFYING", True)
    assert (state["verifiedImportId"], state["storeCompletion"]) == (None, None)


@pytest.mark.parametrize("tamper", IN_TAG)
def test_a_tag_that_differs_is_found_and_named(tamper: str) -> None:
    state, _ = verify_after(tamper, "tag")
    assert_found(state, TAG_MISMATCH, 'tag "a", versions 1 to 3')


@pytest.mark.parametrize("tamper", IN_INDEX)
def test_an_index_that_differs_is_found(tamper: str) -> None:
    state, _ = verify_after(tamper, "index")
    assert_found(state, INDEX_MISMATCH, "")


@pytest.mark.parametrize("tamper", IN_LOG)
def test_a_log_that_differs_is_found(tamper: str) -> None:
    state, _ = verify_after(tamper, "log")
    assert_found(state, STORE_MISMATCH, "")


def test_a_tag_that_lost_everything_is_missing() -> None:
    state, _ = verify_after("DELETE FROM identity", "tag")
    assert_found(state, TAG_MISSING, 'tag "a"')


def test_nothing_opens_before_the_difference_is_mended() -> None:
    state, service = verify_after("UPDATE event SET payload = '2' WHERE version = 1", "tag")

    async def scenario() -> None:
        assert (await service.post("/ready", service.ids))[1]["code"] == "bootstrap_verification_required"
        service.tag_storage("a").exec("UPDATE event SET payload = ? WHERE version = 1", '{"n":1}')
        assert (await service.post("/verify", service.ids))[0] == 202
        await service.world.settle()
        assert (await service.state())["verifiedImportId"] == "import-1"
        assert (await service.post("/ready", service.ids))[1]["status"] == "READY"

    assert_found(state, TAG_MISMATCH, 'tag "a"')
    asyncio.run(scenario())


def test_a_staged_dump_that_lost_a_row_verifies_nothing() -> None:
    async def scenario() -> None:
        service = Service()
        await service.plan(RECORDS)
        await service.post("/import", service.ids)
        await service.world.settle()
        service.coordinator_storage().exec("DELETE FROM staged_event WHERE position = 4")
        await service.post("/verify", service.ids)
        await service.world.settle()
        assert_found(await service.state(), "bootstrap_plan_missing", "")

    asyncio.run(scenario())
