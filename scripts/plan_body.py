"""Composes the body of `plan`: event records, one a line, become a v1 dump for one service with its right digest.

Usage: python scripts/plan_body.py [OPTION...] IMPORT_ID SERVICE_ID LINEAGE <records.ndjson >plan.json
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from dcb_runtime.errors import CodedError
from dcb_runtime.limits import SOURCE_ID_CHARACTERS_MAX
from dcb_runtime.rules.dump_v1 import compose_dump_v1, manifest_v1_for
from dcb_runtime.rules.events import is_event_id as is_uuid
from dcb_runtime.rules.json_pieces import decode
from dcb_runtime.rules.records import read_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SAMPLE_SOURCE: Final = {"serviceId": "old-store", "lineageId": "0b8f3a52-6b0e-4c5d-9f0a-2f6c1d7e9a10"}
"""Whom the sample's events are said to come from; the receipt will tell it."""


class LineError(Exception):
    """A line of the input is no record; the message is one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the records from standard input and print the body."""
    parser = parser_of()
    options = parser.parse_args(arguments)
    if (options.source_service is None) != (options.source_lineage is None):
        parser.error("--source-service and --source-lineage go together")
    sample = options.source_service is None
    source = SAMPLE_SOURCE if sample else {"serviceId": options.source_service, "lineageId": options.source_lineage}
    target = {"serviceId": options.service_id, "allocatorLineageId": options.lineage}
    try:
        records = read_records(sys.stdin.buffer)
        if not records and not options.empty:
            raise LineError("no records on standard input; --empty composes a dump without events")
        dump = compose_dump_v1(manifest_v1_for(records, source, target), records)
    except (CodedError, LineError) as refused:
        print(f"plan_body: {refused}", file=sys.stderr)
        return 1
    evidence = {"bindingExists": False, "eventsExist": False}
    body = {"importId": options.import_id, "dump": dump, "targetEvidence": evidence}
    json.dump(body, sys.stdout, ensure_ascii=False)
    print()
    origin = f"{source['serviceId']}{', the source of the sample: see --source-service' if sample else ''}"
    print(f"plan_body: {len(records)} {'event' if len(records) == 1 else 'events'} from {origin}", file=sys.stderr)
    return 0


def parser_of() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="plan_body", description=(__doc__ or "").splitlines()[0], epilog="records: standard input, one a line"
    )
    parser.add_argument("import_id", metavar="IMPORT_ID", help="a name for the import")
    parser.add_argument("service_id", metavar="SERVICE_ID", help="the service that the events move into")
    parser.add_argument(
        "lineage",
        type=_lineage,
        metavar="LINEAGE",
        help="its allocatorLineageId, from GET /operator/services/SERVICE_ID",
    )
    told = "of the service that the events come from; an export's manifest has it as"
    parser.add_argument("--source-service", type=_source_id, metavar="NAME", help=f"name {told} source.serviceId")
    parser.add_argument("--source-lineage", type=_source_id, metavar="ID", help=f"lineage {told} source.lineageId")
    parser.add_argument("--empty", action="store_true", help="no records are no mistake")
    return parser


def read_records(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """The records of the input, each checked as the service checks it; empty lines are passed over."""
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = decode(line.decode("utf-8"))
        except ValueError:
            raise LineError(f"line {number} is no JSON") from None
        records.append(read_record(value, f"line {number}", lambda _: True))
    return records


def _lineage(text: str) -> str:
    if not is_uuid(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no lineage, which is a UUID")
    return text


def _source_id(text: str) -> str:
    if not 0 < len(text) <= SOURCE_ID_CHARACTERS_MAX:
        raise argparse.ArgumentTypeError(f"1 to {SOURCE_ID_CHARACTERS_MAX:,} characters")
    return text


if __name__ == "__main__":
    sys.exit(main())
