"""The demo: starts the worker, imports real events into a fresh service, looks at them and exports them again.

Everything lies in a temporary folder, and whatever was started is stopped again, however the demo ends.
"""

from __future__ import annotations

import argparse
import json
import queue
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Final

import httpx

from dcb_runtime.rules.dump_v1 import compose_dump_v1, manifest_v1_for
from dcb_runtime.rules.dump_v2 import ChainDigest, content_digest
from scripts.demo_worker import (
    ROOT,
    SIGNALS,
    DemoError,
    Json,
    ask,
    ignore_signals,
    operator_client,
    running_worker,
    say,
    stop_on_signal,
)
from scripts.sizes import report

SAMPLE: Final = ROOT / "samples" / "flights-2000.ndjson"
EVENTS_DEFAULT: Final = 400
EVENTS_MAX: Final = 2000
POLL_S: Final = 0.5
LOG_LINES_SHOWN: Final = 20
EXPORT_PAGE_EVENTS: Final = 150
EVENTS_SHOWN: Final = 3

SERVICE_ID: Final = "flights"
IMPORT_ID: Final = "demo-1"
SOURCE: Final = {"serviceId": "old-flights", "lineageId": "0b8f3a52-6b0e-4c5d-9f0a-2f6c1d7e9a10"}


def main() -> int:
    """Run the demo and return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description="Move real events into a fresh service.")
    parser.add_argument("--events", type=_event_count, default=EVENTS_DEFAULT, help=f"1 to {EVENTS_MAX}")
    events = parser.parse_args().events
    for number in SIGNALS:
        signal.signal(number, stop_on_signal)
    started = time.monotonic()
    # A signal waits until somebody is there to clean up.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    folder = Path(tempfile.mkdtemp(prefix="dcb-runtime-demo-"))
    log = folder / "server.log"
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        with running_worker(folder / "state", log) as (url, token), operator_client(url, token) as client:
            show(client, url, events)
        say("\n7. What it takes on disk")
        for line in report(folder / "state"):
            say(f"   {line}")
    except KeyboardInterrupt:
        say("demo: interrupted; what it had started is stopped")
        return 130
    except Exception as failure:
        ignore_signals()
        kind = "" if isinstance(failure, DemoError) else f"{type(failure).__name__}: "
        say(f"\ndemo: failed: {kind}{failure}")
        _show_log(log)
        return 1
    finally:
        try:
            ignore_signals()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    say(f"\ndemo: done in {time.monotonic() - started:.0f} s; the worker is stopped and its folder deleted")
    return 0


def show(client: httpx.Client, url: str, count: int) -> None:
    """All steps of the demo, one after the other."""
    say(f"\n1. A worker with a fresh service: {url}/operator/services/{SERVICE_ID}")
    service = ask(client, "GET", f"/operator/services/{SERVICE_ID}")
    say(f"   mode {service['mode']}, head {service['head']}, import {service['bootstrap']['status']}")
    say(f"   lineage {service['allocatorLineageId']}: a dump names it, so that it can't end up elsewhere")
    records = sample_records(count)
    import_records(client, records, service["allocatorLineageId"])
    show_receipt(ask(client, "GET", f"/operator/bootstrap/{SERVICE_ID}/receipt"))
    show_tag(client, records)
    check_export(client, records)


def sample_records(count: int) -> list[Json]:
    """The first real records of the sample."""
    with SAMPLE.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, count)]


def import_records(client: httpx.Client, records: list[Json], lineage: str) -> None:
    """Plan the dump of the records, then import it, with a look at the status twice a second."""
    target = {"serviceId": SERVICE_ID, "allocatorLineageId": lineage}
    dump = compose_dump_v1(manifest_v1_for(records, SOURCE, target), records)
    say(f"\n2. Plan a dump of {len(records)} real flights, {dump['manifest']['contentDigest']}")
    body = {"importId": IMPORT_ID, "dump": dump, "targetEvidence": {"bindingExists": False, "eventsExist": False}}
    planned = ask(client, "POST", f"/operator/bootstrap/{SERVICE_ID}/plan", body)
    epoch = planned["leaseEpoch"]
    say(f"   {planned['status']} with lease epoch {epoch}, {len(dump['manifest']['tagCounts'])} tags")
    say("\n3. Import, verify, open; meanwhile the status says (in a phase of tags an event counts once for each tag)")
    started = time.monotonic()
    outcomes = start_import(client, {"importId": IMPORT_ID, "leaseEpoch": epoch})
    shown = ""
    while (outcome := _next(outcomes, POLL_S)) is None:
        line = progress_line(ask(client, "GET", f"/operator/bootstrap/{SERVICE_ID}/status"))
        if line != shown:
            say(f"   {time.monotonic() - started:5.1f} s  {line}")
        shown = line
    if isinstance(outcome, Exception):
        raise outcome
    say(f"   {time.monotonic() - started:5.1f} s  {outcome['status']}")


def start_import(client: httpx.Client, fence: Json) -> queue.Queue[Json | Exception]:
    """Call import, in a thread that nobody waits for at the end, until it is READY; the queue gets what came of it."""
    outcomes: queue.Queue[Json | Exception] = queue.Queue()

    def call() -> None:
        try:
            record: Json = {}
            # 202 with another status: the call's budget was spent and the work goes on.
            while record.get("status") != "READY":
                record = ask(client, "POST", f"/operator/bootstrap/{SERVICE_ID}/import", fence)
            outcomes.put(record)
        except Exception as failure:
            outcomes.put(failure)

    threading.Thread(target=call, daemon=True).start()
    return outcomes


def _next(outcomes: queue.Queue[Json | Exception], timeout_s: float) -> Json | Exception | None:
    try:
        return outcomes.get(timeout=timeout_s)
    except queue.Empty:
        return None


def progress_line(record: Json) -> str:
    """What the status says of the work, on one line."""
    progress = record["progress"]
    events, tags, rate = progress["events"], progress["tags"], progress["ratePerSecond"]
    line = f"{record['status']:<9}  {progress['phase']:<17}  {events['done']:>5} of {events['total']:<5}"
    if tags["done"]:
        line += f"  tags {tags['done']:>4} of {tags['total']}"
    return f"{line}  {rate:.0f}/s" if rate else line.rstrip()


def show_receipt(receipt: Json) -> None:
    """What the service keeps of its import."""
    say("\n4. The receipt: what was moved and what was compared, field by field")
    say(f"   {receipt['eventCount']} events, {receipt['tagCount']} tags, up to {receipt['highWatermark']}")
    say(f"   {receipt['chainDigest']}")
    for part, counts in receipt["compared"].items():
        say(f"   compared {part:<10} {counts['events']:>5} events")
    times = receipt["times"]
    say(f"   planned {times['plannedAt']}, verified {times['verifiedAt']}, ready {times['readyAt']}")


def show_tag(client: httpx.Client, records: list[Json]) -> None:
    """The first events of the busiest carrier, which its tag's object holds with their data."""
    tags = Counter(tag for record in records for tag in record["eventTags"] if tag.startswith("carrier:"))
    tag = tags.most_common(1)[0][0]
    page = ask(client, "GET", f"/operator/services/{SERVICE_ID}/tags/{tag}?limit={EVENTS_SHOWN}")
    expect(page["version"] == tags[tag], f"tag {tag} holds {page['version']} events, not {tags[tag]}")
    say(f"\n5. One tag: {tag} holds {page['version']} events, the last at position {page['head']}")
    for event in page["events"]:
        data = event["data"]
        say(
            f"   {event['position']:>4}  {event['type']}  {data['scheduled']}  {data['carrier']}{data['flight']:<5}"
            f"{data['origin']} to {data['dest']}, {data['distance']} miles"
        )


def check_export(client: httpx.Client, records: list[Json]) -> None:
    """Export the service in pages, compare each event with the sample and compute the digest here."""
    say("\n6. Export the service again, as pages of a dump v2")
    chain = ChainDigest()
    exported: list[Json] = []
    body: Json = {"targetServiceId": "flights-copy", "pageSize": EXPORT_PAGE_EVENTS}
    while True:
        answer = ask(client, "POST", f"/operator/bootstrap/{SERVICE_ID}/export", body)
        for event in answer["page"]:
            chain.add(event)
        exported += answer["page"]
        say(f"   page of {len(answer['page'])} events, {len(exported)} so far")
        if answer["complete"]:
            break
        body["cursor"] = answer["cursor"]
    manifest = answer["manifest"]
    expect(exported == records, "the exported events are not those that were imported")
    computed = content_digest(manifest, chain.state)
    expect(computed == manifest["contentDigest"], f"the digest is {computed}, the manifest says another one")
    say(f"   manifest v{manifest['version']}: {manifest['eventCount']} events, {manifest['tagCount']} tags")
    say(f"   {manifest['contentDigest']}")
    say("   the same digest was computed here from the pages, and every event equals the one that went in")


def expect(condition: bool, text: str) -> None:
    """Fail with ``text`` unless the condition holds."""
    if not condition:
        raise DemoError(text)


def _show_log(log: Path) -> None:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    say(f"demo: the worker's last lines of log{':' if lines else ' are none'}")
    for line in lines[-LOG_LINES_SHOWN:]:
        say(f"   {line}")


def _event_count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= EVENTS_MAX:
        raise argparse.ArgumentTypeError(f"a number from 1 to {EVENTS_MAX}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
