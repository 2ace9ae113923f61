"""The 2,000 real events of the sample, moved in over the operator's lane and out again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.runtime.server import Server
from tests.support.dumps import flights
from tests.workerd.expected import digest_v2, expected_receipt, tags_of, without_times
from tests.workerd.operators import Operator, ok

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def operator() -> Iterator[Operator]:
    """An operator who has imported the sample into the deployable worker."""
    with Server() as server:
        operator = Operator(server, "flights").plan(flights())
        statuses: list[int] = []
        record = operator.run(statuses)
        print(f"\nimport calls answered {statuses}; {record['progress']}")
        yield operator


def test_every_record_is_in_the_log_in_its_order_and_the_manifest_says_so(operator: Operator) -> None:
    records, manifest = operator.export(page_size=777)
    assert records == operator.dump["events"]
    assert manifest["contentDigest"] == digest_v2(manifest, records)
    assert (manifest["version"], manifest["eventCount"], manifest["tagCount"]) == (2, 2000, 2401)
    assert manifest["highWatermark"] == records[-1]["suid"]


def test_the_receipt_tells_what_was_moved_and_compared(operator: Operator) -> None:
    receipt = ok(operator.get("receipt"))
    assert without_times(receipt) == expected_receipt(operator.dump, operator.import_id)
    times = receipt["times"]
    assert times["plannedAt"] <= times["importedAt"] <= times["verifiedAt"] <= times["readyAt"]


def test_tags_hold_their_events_field_by_field(operator: Operator) -> None:
    records = operator.dump["events"]
    busiest = [tag for tag, _ in Counter(tag for record in records for tag in record["eventTags"]).most_common(8)]
    for tag in {*busiest, *tags_of(records)[::100]}:
        operator.check_tag(tag)


def test_the_service_is_open_and_settled(operator: Operator) -> None:
    record = operator.settled()
    assert (record["status"], record["progress"]["phase"]) == ("READY", "done")
    overview = operator.overview()
    assert (overview["mode"], overview["head"], overview["tagCount"]) == ("open", 2000, 2401)
    assert overview["watermark"] == operator.dump["manifest"]["highWatermark"]


def test_the_memory_of_the_runtime_is_bounded(operator: Operator) -> None:
    """Most of it is the local runtime's own for 2,401 objects in one process: about 0.3 MiB each."""
    peak = operator.server.peak_memory()
    print(f"\npeak memory of workerd after the sample: {peak / MIB:.0f} MiB")
    assert peak < 3072 * MIB
