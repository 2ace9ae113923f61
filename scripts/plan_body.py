"""Composes the body of `plan`: event records, one a line, become a v1 dump for one service with its right digest.

Usage: python scripts/plan_body.py IMPORT_ID SERVICE_ID LINEAGE <records.ndjson >plan.json
LINEAGE is the `allocatorLineageId` that the service itself tells (GET /operator/services/SERVICE_ID).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from dcb_runtime.errors import CodedError
from dcb_runtime.rules.dump_v1 import compose_dump_v1, manifest_v1_for

SOURCE: Final = {"serviceId": "old-store", "lineageId": "0b8f3a52-6b0e-4c5d-9f0a-2f6c1d7e9a10"}
"""Whom the events come from, as the receipt will tell; a real export names its own."""


def main(arguments: list[str]) -> int:
    """Read the records from standard input and print the body."""
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    import_id, service_id, lineage = arguments
    target = {"serviceId": service_id, "allocatorLineageId": lineage}
    records = [json.loads(line) for line in sys.stdin if line.strip()]
    try:
        dump = compose_dump_v1(manifest_v1_for(records, SOURCE, target), records)
    except CodedError as refused:
        print(f"plan_body: {refused}", file=sys.stderr)
        return 1
    evidence = {"bindingExists": False, "eventsExist": False}
    json.dump({"importId": import_id, "dump": dump, "targetEvidence": evidence}, sys.stdout, ensure_ascii=False)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
