"""An operator's calls to a running worker, and what an import must have led to."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import httpx

from tests.runtime.server import OPERATOR_TOKEN, REQUEST_TIMEOUT_S
from tests.support.dumps import dump_of
from tests.workerd.expected import digest_v2, expected_receipt, expected_tag, tags_of, without_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runtime.server import Server

T = TypeVar("T")

DEADLINE_S = 120.0
FRESH = {"bindingExists": False, "eventsExist": False}


@dataclass(frozen=True)
class Got:
    """An answer: its status and its JSON."""

    status: int
    json: Any

    @property
    def code(self) -> tuple[int, str]:
        """Status and code of a refusal."""
        return self.status, self.json.get("code")


class Operator:
    """The operator of one service; ``ids`` names its import once it is planned."""

    def __init__(self, server: Server, service: str, import_id: str = "import-1") -> None:
        self.server = server
        self.service = service
        self.import_id = import_id
        self.epoch = 0
        self.dump: dict[str, Any] = {}

    @property
    def ids(self) -> dict[str, Any]:
        return {"importId": self.import_id, "leaseEpoch": self.epoch}

    def request(self, method: str, path: str, body: Any = None) -> Got:
        """One request on a connection of its own, so that threads may use this operator."""
        headers = {"authorization": f"Bearer {OPERATOR_TOKEN}"}
        answer = send(self.server, method, path, body, headers)
        assert answer.headers["cache-control"] == "no-store"
        return Got(answer.status_code, answer.json())

    def post(self, route: str, body: Any) -> Got:
        return self.request("POST", f"/operator/bootstrap/{self.service}/{route}", body)

    def get(self, route: str) -> Got:
        return self.request("GET", f"/operator/bootstrap/{self.service}/{route}")

    def status(self) -> dict[str, Any]:
        return ok(self.get("status"))

    def overview(self) -> dict[str, Any]:
        return ok(self.request("GET", f"/operator/services/{self.service}"))

    def tag(self, tag: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        path = f"/operator/services/{self.service}/tags/{quote(tag, safe='')}?after={after}&limit={limit}"
        return ok(self.request("GET", path))

    def compose(self, records: list[dict[str, Any]]) -> dict[str, Any]:
        """A dump for this service, with its own lineage."""
        return dump_of(records, self.service, self.overview()["allocatorLineageId"])

    def try_plan(self, dump: dict[str, Any], **evidence: bool) -> Got:
        return self.post("plan", {"importId": self.import_id, "dump": dump, "targetEvidence": {**FRESH, **evidence}})

    def plan(self, records: list[dict[str, Any]]) -> Operator:
        """Plan these records; the plan must succeed."""
        self.dump = self.compose(records)
        planned = self.try_plan(self.dump)
        assert (planned.status, planned.json["status"]) == (201, "PLANNED"), planned
        self.epoch = planned.json["leaseEpoch"]
        return self

    def run(self, statuses: list[int] | None = None) -> dict[str, Any]:
        """Call import until it is READY, as long as it comes further; ``statuses`` collects what each call answered."""
        deadline, seen = time.monotonic() + DEADLINE_S, None
        while True:
            answer = self.post("import", self.ids)
            if statuses is not None:
                statuses.append(answer.status)
            if answer.status == 200:
                assert answer.json["status"] == "READY"
                record: dict[str, Any] = answer.json
                return record
            assert answer.status == 202, answer
            if answer.json["progress"] != seen:
                deadline, seen = time.monotonic() + DEADLINE_S, answer.json["progress"]
            assert time.monotonic() < deadline, seen

    def abort(self) -> None:
        """Abort the import, which must succeed."""
        aborted = self.post("abort", self.ids)
        assert (aborted.status, aborted.json["status"], aborted.json["failure"]) == (200, "FAILED", "operator_abort")

    def takeover(self) -> None:
        """Take the import over, which must succeed, and go on under the new epoch."""
        body = {"importId": self.import_id, "digest": self.dump["manifest"]["contentDigest"]}
        taken = self.post("takeover", body)
        assert taken.status in (200, 202), taken
        assert taken.json["leaseEpoch"] == self.epoch + 1
        self.epoch += 1

    def reset(self) -> None:
        """Call reset until the service is EMPTY, and as fresh as it was."""

        def empty() -> bool | None:
            answer = self.post("reset", self.ids)
            if answer.status == 202:
                return None
            assert (answer.status, answer.json["status"]) == (200, "EMPTY"), answer
            return True

        eventually(empty)
        overview = self.overview()
        assert (overview["mode"], overview["head"], overview["tagCount"], overview["watermark"]) == ("open", 0, 0, None)

    def settled(self) -> dict[str, Any]:
        """Wait until nothing is left to do, also behind READY."""

        def quiet() -> dict[str, Any] | None:
            record = self.status()
            busy = record["progress"]["running"] or record["progress"]["phase"] in ("opening", "closing", "clearing")
            return None if busy else record

        return eventually(quiet)

    def export(self, page_size: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """All records by pages, and the manifest of the last one."""
        records: list[dict[str, Any]] = []
        cursor = None
        while True:
            body = {"targetServiceId": self.service, "pageSize": page_size, "cursor": cursor}
            page = ok(self.post("export", body))
            records += page["page"]
            cursor = page["cursor"]
            if page["complete"]:
                manifest: dict[str, Any] = page["manifest"]
                return records, manifest

    def check(self) -> dict[str, Any]:
        """The service holds exactly its dump: receipt, index totals, every tag event by event, and the log."""
        record = self.settled()
        assert (record["status"], record["progress"]["phase"]) == ("READY", "done")
        receipt = ok(self.get("receipt"))
        assert without_times(receipt) == expected_receipt(self.dump, self.import_id)
        records = self.dump["events"]
        overview = self.overview()
        tags = tags_of(records)
        assert (overview["mode"], overview["head"], overview["eventCount"]) == ("open", len(records), len(records))
        assert (overview["tagCount"], overview["watermark"]) == (len(tags), self.dump["manifest"]["highWatermark"])
        for tag in tags:
            self.check_tag(tag)
        exported, manifest = self.export(page_size=1000)
        assert exported == records
        assert manifest["contentDigest"] == digest_v2(manifest, exported)
        return receipt

    def check_tag(self, tag: str) -> None:
        """A tag's events are those of the dump, field by field."""
        expected = expected_tag(self.dump["events"], tag)
        shown = self.tag(tag)
        events = shown["events"]
        while "next" in shown:
            shown = self.tag(tag, after=shown["next"])
            events += shown["events"]
        assert events == expected
        last = expected[-1]
        assert (shown["version"], shown["head"], shown["suid"]) == (len(expected), last["position"], last["suid"])


def send(
    server: Server, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> httpx.Response:
    """One request on a connection of its own; a body of bytes goes out as it is, anything else as JSON."""
    content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    # Without the certificates, whose loading would cost more than the request.
    with httpx.Client(verify=False, timeout=REQUEST_TIMEOUT_S) as client:
        return client.request(method, f"{server.base_url}{path}", headers=headers, content=content)


def ok(answer: Got) -> dict[str, Any]:
    """The JSON of an answer that must be 200."""
    assert answer.status == 200, answer
    body: dict[str, Any] = answer.json
    return body


def eventually(look: Callable[[], T | None]) -> T:
    """Look again and again until there is something."""
    deadline = time.monotonic() + DEADLINE_S
    while (found := look()) is None:
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
    return found
