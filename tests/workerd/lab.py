"""The laboratory worker from outside: orders, direct calls of objects, and a server that runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.runtime.server import Server
from tests.workerd.operators import Got, Operator, eventually, send

WORKERS = Path(__file__).parent / "workers"


def lab_server(state: Path | None = None) -> Server:
    """A server of the laboratory worker, not started yet."""
    return Server(root=WORKERS / "lab", state=state)


class Lab:
    """Orders faults of a laboratory worker and calls its objects directly."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def orders(self, **orders: Any) -> dict[str, Any]:
        """Give orders, if any, and read what holds and what was seen."""
        answer = send(self.server, "POST", "/lab/orders", orders) if orders else send(self.server, "GET", "/lab/orders")
        shown: dict[str, Any] = answer.raise_for_status().json()
        return shown

    def gate(self, name: str, service: str, route: str, **more: Any) -> None:
        """Hold (or lose) calls of a service's route, see the worker's ``Gate``."""
        self.orders(gates=[{"name": name, "service": service, "route": route, **more}])

    def open(self, *names: str) -> None:
        """Let what these gates hold go on; they act no more."""
        self.orders(open=list(names))

    def reached(self, name: str) -> int:
        """How many calls a gate has acted on."""
        return sum(int(gate["reached"]) for gate in self.orders()["gates"] if gate["name"] == name)

    def wait_reached(self, *names: str, times: int = 1) -> None:
        """Wait until each of these gates has acted so many times."""
        for name in names:
            eventually(lambda name=name: self.reached(name) >= times or None)  # type: ignore[misc]

    def calls(self, service: str, when: str = "before") -> list[str]:
        """The routes that a service's objects called since the start, in order."""
        seen = self.orders()["calls"]
        return [call["route"] for call in seen if (call["service"], call["when"]) == (service, when)]

    def call(
        self,
        actor: str,
        service: str,
        path: str,
        body: Any = None,
        *,
        by: str = "rpc",
        method: str | None = None,
        tag: str | None = None,
        name: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Got:
        """Call an object directly. A ``str`` body goes out as it is, anything else as JSON."""
        identity = {"allocator": "allocator", "bootstrap": "coordinator"}.get(actor) or object_identity(tag or "")
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        request = {
            "actor": actor,
            "name": name or f"{service}/{actor}/{identity}",
            "path": path if "?" in path else path + query(service, tag),
            "method": method or ("GET" if text is None else "POST"),
            "body": text,
            "by": by,
            "headers": headers or {"content-type": "application/json"},
        }
        answer = send(self.server, "POST", "/lab/call", request).raise_for_status().json()
        return Got(answer["status"], json.loads(answer["text"]))

    def start(self, operator: Operator) -> None:
        """Have the alarm import and verify, without waiting for it."""
        answer = self.call("bootstrap", operator.service, "/import", {**operator.ids, "through": "verify"})
        assert answer.status == 202, answer

    def operator(self, service: str, import_id: str = "import-1") -> Operator:
        """An operator of a service of this worker."""
        return Operator(self.server, service, import_id)


def object_identity(tag: str) -> str:
    """A tag as it stands in an object's name."""
    return tag.replace("%", "%25").replace("/", "%2F")


def query(service: str, tag: str | None) -> str:
    """The query by which an object is told whom it serves."""
    tagged = "" if tag is None else f"__tag={quote(tag, safe='')}&"
    return f"?{tagged}__serviceId={quote(service, safe='')}"
