"""kill -9 of the whole process group in the middle of an import: nothing is lost, and the alarm alone goes on.

Each moment is a gate that holds the import there; a gate lives in memory, so after the restart nothing is held.
"""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from tests.support.dumps import record
from tests.workerd.lab import Lab, lab_server
from tests.workerd.operators import Operator, eventually

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = [record(number, "all", f"each/{number}") for number in range(1, 10)]
"""Nine events under ten tags: two rounds of eight at a time."""


@dataclass(frozen=True)
class Moment:
    """Where an import is held: a call by route, and whether it was carried out already."""

    name: str
    route: str
    when: str = "before"
    skip: int = 0

    @property
    def service(self) -> str:
        return f"at-{self.name}"


PENDING = [
    Moment("fence-not-raised", "/fence/raise"),
    Moment("fence-raised-unknown", "/fence/raise", "after"),
    Moment("log-fenced-unknown", "log/fence", "after"),
]
RUNNING = [
    Moment("first-index-chunk", "/import/admit"),
    Moment("index-chunk-unknown", "/import/admit", "after"),
    Moment("seed-unknown", "/seed-after", "after"),
    Moment("first-tag", "/bootstrap/admit"),
    Moment("middle-of-tags", "/bootstrap/admit", skip=8),
    Moment("last-tag-unknown", "/bootstrap/admit", "after", skip=9),
    Moment("log", "log/admit"),
    Moment("log-unknown", "log/admit", "after"),
    Moment("verify-index", "/index/events"),
    Moment("verify-index-tags", "/index/tags", "after"),
    Moment("verify-tags", "/digest", skip=8),
    Moment("verify-log", "log/compared", "after"),
    Moment("verify-log-count", "log/count"),
]
OPENING = [
    Moment("opening", "/fence/open"),
    Moment("opened-unknown", "/fence/open", "after"),
    Moment("closing", "/bootstrap/close", skip=9),
    Moment("closed-log-unknown", "log/close", "after"),
]


def gates(moments: list[Moment]) -> list[dict[str, Any]]:
    """Hold whoever comes by at these moments: a request and the alarm may both be on their way."""
    return [
        {
            "name": each.name,
            "service": each.service,
            "route": each.route,
            "when": each.when,
            "skip": each.skip,
            "times": 99,
        }
        for each in moments
    ]


def in_the_background(work: Any, *arguments: Any, **named: Any) -> threading.Thread:
    """Make a call that the kill will cut off."""

    def call() -> None:
        with contextlib.suppress(httpx.TransportError):
            work(*arguments, **named)

    thread = threading.Thread(target=call)
    thread.start()
    return thread


def kill_and_restart(lab: Lab, threads: list[threading.Thread]) -> None:
    lab.server.kill()
    for thread in threads:
        thread.join()
    lab.server.restart()


def make_ready(lab: Lab, operator: Operator) -> None:
    lab.call("bootstrap", operator.service, "/ready", operator.ids)


def wait_for_call(lab: Lab, moments: list[Moment], route: str) -> None:
    """Wait until the services' coordinators have made a call, without a request to any object of theirs."""
    services = {moment.service for moment in moments}

    def made() -> bool | None:
        calls = lab.orders()["calls"]
        done = {call["service"] for call in calls if (call["route"], call["when"]) == (route, "after")}
        return services <= done or None

    eventually(made)


def test_a_plan_that_was_cut_off_is_settled_by_the_alarm(tmp_path: Path) -> None:
    with lab_server(tmp_path) as server:
        lab = Lab(server)
        operators = [lab.operator(moment.service) for moment in PENDING]
        dumps = [operator.compose(RECORDS) for operator in operators]
        lab.orders(gates=gates(PENDING))
        threads = [in_the_background(operator.try_plan, dump) for operator, dump in zip(operators, dumps, strict=True)]
        lab.wait_reached(*(moment.name for moment in PENDING))
        kill_and_restart(lab, threads)
        wait_for_call(lab, PENDING, "log/fence")
        for operator, dump in zip(operators, dumps, strict=True):
            planned = eventually(lambda operator=operator: planned_record(operator))  # type: ignore[misc]
            operator.dump, operator.epoch = dump, planned["leaseEpoch"]
            assert operator.try_plan(dump).status == 201
            operator.run()
            operator.check()


def planned_record(operator: Operator) -> dict[str, Any] | None:
    shown = operator.status()
    return shown if shown["status"] == "PLANNED" else None


def test_an_import_that_was_cut_off_anywhere_goes_on_by_its_alarm_alone(tmp_path: Path) -> None:
    with lab_server(tmp_path) as server:
        lab = Lab(server)
        operators = {moment: lab.operator(moment.service).plan(RECORDS) for moment in [*RUNNING, *OPENING]}
        untouched = lab.operator("planned-only").plan(RECORDS)
        verified = lab.operator("verified-only").plan(RECORDS)
        lab.orders(gates=gates(RUNNING))
        for operator in [*operators.values(), verified]:
            lab.start(operator)
        lab.wait_reached(*(moment.name for moment in RUNNING))
        unheld = [operators[moment] for moment in OPENING]
        for operator in [*unheld, verified]:
            eventually(lambda operator=operator: operator.status()["verifiedImportId"])  # type: ignore[misc]
        lab.orders(gates=gates(OPENING))
        threads = [in_the_background(make_ready, lab, operator) for operator in unheld]
        lab.wait_reached(*(moment.name for moment in OPENING))

        kill_and_restart(lab, threads)
        wait_for_call(lab, RUNNING, "log/count")
        wait_for_call(lab, OPENING, "log/close")

        for moment in RUNNING:
            record = operators[moment].settled()
            assert (record["status"], record["verifiedLeaseEpoch"]) == ("VERIFYING", 1), moment
        for moment in OPENING:
            assert operators[moment].settled()["status"] == "READY", moment
        for operator in [*operators.values(), untouched, verified]:
            operator.run()
            operator.check()


def test_one_import_killed_again_and_again_ends_as_if_nothing_had_been(tmp_path: Path) -> None:
    places = [("/import/admit", "after"), ("/bootstrap/admit", "after"), ("log/admit", "before"), ("/digest", "after")]
    with lab_server(tmp_path) as server:
        lab = Lab(server)
        operator = lab.operator("often").plan(RECORDS)
        lab.orders(gates=[{"name": "0", "service": "often", "route": places[0][0], "when": places[0][1]}])
        thread = in_the_background(operator.run)
        for number, _ in enumerate(places):
            lab.wait_reached(str(number))
            following = [
                {"name": str(number + 1), "service": "often", "route": route, "when": when}
                for route, when in places[number + 1 : number + 2]
            ]
            server.variables["ORDERS"] = json.dumps({"gates": following})
            kill_and_restart(lab, [thread])
        operator.run()
        assert operator.check()["leaseEpoch"] == 1
