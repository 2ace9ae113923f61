"""Credentials, and bodies, methods and paths that are wrong: each a coded 4xx, and nothing changes."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.runtime.server import API_TOKEN, OPERATOR_TOKEN, Server
from tests.support.dumps import record
from tests.workerd.operators import FRESH, Operator, send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.workerd.lab import Lab

LANE = "/operator/bootstrap/requests"
RECORDS = [record(1, "a"), record(2, "b")]
KIB = 1024


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Status and code, after a look at what every refusal has."""
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    body = answer.json()
    assert body["error"]
    return answer.status_code, body["code"]


def as_operator(server: Server, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
    return send(server, method, path, body, {"authorization": f"Bearer {OPERATOR_TOKEN}", **headers})


@pytest.fixture
def planned(lab: Lab) -> Iterator[Operator]:
    """A planned import that must be the same afterwards."""
    operator = lab.operator("requests")
    if operator.status()["status"] == "EMPTY":
        operator.plan(RECORDS)
    before = operator.status(), operator.overview()
    yield operator
    assert (operator.status(), operator.overview()) == before


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", f"Bearer {OPERATOR_TOKEN}x", f"Bearer {OPERATOR_TOKEN[:-1]}", f"Bearer {API_TOKEN}",
     f"Basic {OPERATOR_TOKEN}", OPERATOR_TOKEN, "Bearer undefined", f"Bearer {OPERATOR_TOKEN} {OPERATOR_TOKEN}"],
)  # fmt: skip
def test_missing_and_wrong_credentials_are_the_same_401(planned: Operator, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    for method, path in (
        ("GET", f"{LANE}/status"),
        ("POST", f"{LANE}/abort"),
        ("GET", "/operator/none"),
        ("PUT", LANE),
    ):
        answer = send(planned.server, method, path, None, headers)
        assert refusal(answer) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.content == send(planned.server, "GET", f"{LANE}/status").content


def test_the_scheme_is_case_insensitive_and_health_is_open(planned: Operator) -> None:
    for scheme in ("bearer", "BEARER"):
        headers = {"authorization": f"{scheme} {OPERATOR_TOKEN}"}
        assert send(planned.server, "GET", f"{LANE}/status", None, headers).status_code == 200
    health = send(planned.server, "GET", "/health")
    assert (health.status_code, health.headers["cache-control"]) == (200, "no-store")
    assert set(health.json()) == {"status", "version"}


def test_two_tokens_while_one_is_rotated_and_none_that_is_unfit() -> None:
    old, new = "old-operator-token-0123", "new-operator-token-4567"
    with Server(operator_token=f"{old},{new}", api_token="short") as server:
        for token, status in ((old, 200), (new, 200), (f"{old},{new}", 401), (OPERATOR_TOKEN, 401)):
            answer = send(server, "GET", f"{LANE}/status", None, {"authorization": f"Bearer {token}"})
            assert answer.status_code == status, token
        for token in ("short", "other", old):
            answer = send(server, "GET", "/services/requests/tags/a", None, {"authorization": f"Bearer {token}"})
            assert refusal(answer) == (503, "auth_not_configured")
        server.stop()
        for secret in ("", "fifteen-letters"):
            server.operator_token = secret
            server.restart()
            for presented in ({"authorization": f"Bearer {secret}".strip()}, {"authorization": f"Bearer {old}"}, {}):
                answer = send(server, "GET", f"{LANE}/status", None, presented)
                assert refusal(answer) == (503, "auth_not_configured"), secret
            server.stop()


def test_no_header_of_a_request_reaches_an_object(lab: Lab, planned: Operator) -> None:
    lab.orders(forget=True)
    marks = {"x-mark": "marked-header", "cookie": "marked=cookie", "traceparent": "00-marked", "cf-ray": "marked-ray"}
    for method, path, body in (
        ("GET", f"{LANE}/status", None),
        ("POST", f"{LANE}/verify", planned.ids),
        ("GET", "/operator/services/requests", None),
        ("GET", "/operator/services/requests/tags/a", None),
        ("POST", f"{LANE}/export", {"targetServiceId": "copy"}),
    ):
        as_operator(planned.server, method, path, body, **marks)
    arrivals = lab.orders()["arrivals"]
    assert len(arrivals) >= 6
    assert {arrival["by"] for arrival in arrivals} == {"rpc"}
    told = json.dumps(arrivals)
    assert "marked" not in told
    assert OPERATOR_TOKEN not in told


PLAN = {"importId": "import-2", "targetEvidence": FRESH}
DUMP: dict[str, Any] = {"manifest": {}, "events": []}
BAD_BODIES: list[tuple[str, Any, tuple[int, str]]] = [
    ("plan", b"", (400, "bootstrap_body_invalid")),
    ("plan", b"{", (400, "bootstrap_body_invalid")),
    ("plan", b"{} {}", (400, "bootstrap_body_invalid")),
    ("plan", b'{"a":"\xff"}', (400, "bootstrap_body_invalid")),
    ("plan", b"\xef\xbb\xbf{}", (400, "bootstrap_body_invalid")),
    ("plan", b"[" * 50_000, (400, "bootstrap_body_invalid")),
    ("plan", b"[" * 4_000_000, (400, "bootstrap_body_invalid")),
    ("plan", b"[" * 50_000 + b"]" * 50_000, (400, "bootstrap_body_invalid")),
    ("import", b'{"importId":' * 5_000, (400, "bootstrap_body_invalid")),
    ("plan", [], (400, "bootstrap_plan_invalid")),
    ("plan", {}, (400, "bootstrap_plan_invalid")),
    ("plan", {**PLAN, "dump": []}, (400, "bootstrap_plan_invalid")),
    ("plan", {**PLAN, "dump": DUMP, "faultAt": "mode-record"}, (400, "bootstrap_plan_invalid")),
    ("plan", {**PLAN, "dump": DUMP, "importId": ""}, (400, "bootstrap_plan_invalid")),
    ("plan", {**PLAN, "dump": DUMP, "importId": "x" * 257}, (400, "bootstrap_plan_invalid")),
    ("plan", {**PLAN, "dump": DUMP, "targetEvidence": {}}, (400, "bootstrap_plan_invalid")),
    ("plan", {**PLAN, "dump": {}}, (400, "unknown_or_missing_field")),
    ("plan", {**PLAN, "dump": DUMP}, (400, "unknown_or_missing_field")),
    ("import", b"nothing", (400, "bootstrap_body_invalid")),
    ("import", b"\xff", (400, "bootstrap_body_invalid")),
    ("import", [], (400, "bootstrap_body_invalid")),
    ("import", {}, (409, "bootstrap_epoch_rejected")),
    ("import", {"importId": "import-1", "leaseEpoch": "1"}, (409, "bootstrap_epoch_rejected")),
    ("import", {"importId": "import-1", "leaseEpoch": 1.5}, (409, "bootstrap_epoch_rejected")),
    ("import", {"importId": "import-1", "leaseEpoch": True}, (409, "bootstrap_epoch_rejected")),
    ("import", {"importId": "import-1", "leaseEpoch": -1}, (409, "bootstrap_epoch_rejected")),
    ("import", {"importId": "import-1", "leaseEpoch": 2}, (409, "bootstrap_epoch_rejected")),
    ("import", b'{"importId":"import-1","leaseEpoch":99999999999999999999999}', (409, "bootstrap_epoch_rejected")),
    ("import", {"importId": "import-1", "leaseEpoch": 1, "faultAt": "tag-chunk"}, (400, "bootstrap_body_invalid")),
    ("import", {"importId": "import-1", "leaseEpoch": 1, "dump": {}}, (400, "bootstrap_dump_invalid")),
    ("import", {"importId": "import-1", "leaseEpoch": 1, "dump": DUMP}, (400, "bootstrap_dump_invalid")),
    ("verify", {"importId": "import-1", "leaseEpoch": 1}, (409, "bootstrap_state_rejected")),
    ("verify", {"importId": "import-1", "leaseEpoch": 1, "x": 1}, (400, "bootstrap_body_invalid")),
    ("abort", b"", (400, "bootstrap_body_invalid")),
    ("abort", {"importId": "import-1", "leaseEpoch": 7}, (409, "bootstrap_epoch_rejected")),
    ("abort", {"importId": "import-1", "leaseEpoch": 1, "x": 1}, (400, "bootstrap_body_invalid")),
    ("takeover", b"1", (400, "bootstrap_takeover_invalid")),
    ("takeover", {"importId": "import-1", "digest": "x"}, (409, "bootstrap_takeover_mismatch")),
    ("reset", {"importId": "import-1", "leaseEpoch": 1}, (409, "bootstrap_state_rejected")),
    ("export", b"\xff", (400, "bootstrap_body_invalid")),
    ("export", b"[" * 60_000, (400, "bootstrap_body_invalid")),
    ("export", {}, (400, "bootstrap_export_invalid")),
    ("export", {"targetServiceId": "a/b"}, (400, "bootstrap_export_invalid")),
    ("export", {"targetServiceId": "a", "pageSize": 0}, (400, "bootstrap_export_invalid")),
    ("export", {"targetServiceId": "a", "pageSize": 1001}, (400, "bootstrap_export_invalid")),
    ("export", {"targetServiceId": "a", "cursor": "x"}, (400, "bootstrap_export_invalid")),
    ("export", {"targetServiceId": "a", "allocatorLineageId": "x"}, (400, "bootstrap_export_invalid")),
    ("export", {"targetServiceId": "a"}, (409, "bootstrap_in_progress")),
]


@pytest.mark.parametrize(("route", "body", "expected"), BAD_BODIES)
def test_a_bad_body_has_its_code(planned: Operator, route: str, body: Any, expected: tuple[int, str]) -> None:
    assert refusal(as_operator(planned.server, "POST", f"{LANE}/{route}", body)) == expected


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", f"{LANE}/plan", (405, "method_not_allowed")),
        ("PUT", f"{LANE}/import", (405, "method_not_allowed")),
        ("POST", f"{LANE}/status", (405, "method_not_allowed")),
        ("DELETE", f"{LANE}/abort", (405, "method_not_allowed")),
        ("PATCH", "/operator/services/requests", (405, "method_not_allowed")),
        ("POST", "/health", (405, "method_not_allowed")),
        ("GET", LANE, (404, "not_found")),
        ("GET", f"{LANE}/status/", (404, "not_found")),
        ("GET", f"{LANE}//status", (404, "not_found")),
        ("GET", "/operator", (404, "not_found")),
        ("GET", "/", (404, "not_found")),
        ("GET", "/debug/state", (404, "not_found")),
        ("POST", f"{LANE}/ready", (404, "not_found")),
        ("GET", "/operator/bootstrap/%/status", (400, "bootstrap_service_invalid")),
        ("GET", "/operator/bootstrap/%zz/status", (400, "bootstrap_service_invalid")),
        ("GET", "/operator/bootstrap/%ff/status", (400, "bootstrap_service_invalid")),
        ("GET", "/operator/bootstrap/a%2Fb/status", (400, "bootstrap_service_invalid")),
        ("GET", "/operator/bootstrap/-a/status", (400, "bootstrap_service_invalid")),
        ("GET", f"/operator/bootstrap/{'x' * 97}/status", (400, "bootstrap_service_invalid")),
        ("GET", "/operator/services/a%20b", (400, "service_id_invalid")),
        ("GET", "/operator/services/requests/tags/%", (400, "tag_invalid")),
        ("GET", "/operator/services/requests/tags/%C3%28", (400, "tag_invalid")),
        ("GET", "/operator/services/requests/tags/%00", (400, "tag_invalid")),
        ("GET", f"/operator/services/requests/tags/{'x' * 257}", (400, "tag_invalid")),
        ("GET", "/operator/services/requests/tags/a?after=-1", (400, "query_invalid")),
        ("GET", "/operator/services/requests/tags/a?limit=0", (400, "query_invalid")),
        ("GET", "/operator/services/requests/tags/a?limit=1001", (400, "query_invalid")),
        ("GET", "/operator/services/requests/tags/a?after=1&after=2", (400, "query_invalid")),
        ("GET", "/operator/services/requests/tags/a?after=%zz", (400, "query_invalid")),
        ("GET", "/operator/services/requests/tags/a?__serviceId=other", (400, "query_invalid")),
        ("GET", f"{LANE}/status?__serviceId=other", (400, "query_invalid")),
        ("GET", f"{LANE}/receipt", (404, "bootstrap_receipt_missing")),
    ],
)
def test_a_wrong_method_or_path_has_its_code(
    planned: Operator, method: str, path: str, expected: tuple[int, str]
) -> None:
    """Sent without a client that would mend the path."""
    head, body = raw_request(planned.server, f"{method} {path} HTTP/1.1", b"")
    assert (int(head.split()[1]), json.loads(body)["code"]) == expected
    assert "cache-control: no-store" in head.lower()


@pytest.mark.parametrize(("route", "bytes_max"), [("abort", 64 * KIB), ("plan", 4160 * KIB), ("import", 4160 * KIB)])
def test_a_body_that_is_too_large_is_refused_declared_or_not(planned: Operator, route: str, bytes_max: int) -> None:
    too_large = (413, "body_too_large" if route == "abort" else "dump_too_large")
    padding = b" " * (bytes_max + 1)
    assert refusal(as_operator(planned.server, "POST", f"{LANE}/{route}", padding)) == too_large
    headers = {"authorization": f"Bearer {OPERATOR_TOKEN}"}
    with httpx.Client(verify=False, timeout=60) as client:
        pieces = (padding[start : start + 64 * KIB] for start in range(0, len(padding), 64 * KIB))
        answer = client.post(f"{planned.server.base_url}{LANE}/{route}", headers=headers, content=pieces)
    assert refusal(answer) == too_large


def test_a_declared_length_is_enough_to_be_refused(planned: Operator) -> None:
    line = f"POST {LANE}/abort HTTP/1.1\r\nContent-Length: 99999999999"
    head, body = raw_request(planned.server, line, b"{")
    assert (int(head.split()[1]), json.loads(body)["code"]) == (413, "body_too_large")


def test_a_body_that_ends_early_is_refused(planned: Operator) -> None:
    line = f"POST {LANE}/abort HTTP/1.1\r\nTransfer-Encoding: chunked"
    head, body = raw_request(planned.server, line, b'5\r\n{"a":\r\nzz\r\n')
    assert (int(head.split()[1]), json.loads(body)["code"]) == (400, "body_invalid")


def test_a_host_that_is_none_does_not_matter(planned: Operator) -> None:
    head, body = raw_request(planned.server, "GET /health HTTP/1.1", b"", host="[zz]")
    assert (int(head.split()[1]), json.loads(body)["status"]) == (200, "ok")


def raw_request(server: Server, line: str, body: bytes, host: str = "test") -> tuple[str, str]:
    """Send one request as it stands; the answer's head and body."""
    address = urlsplit(server.base_url)
    head = f"{line}\r\nHost: {host}\r\nAuthorization: Bearer {OPERATOR_TOKEN}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=60) as connection:
        connection.sendall(head.encode() + body)
        received = b""
        while b"\r\n\r\n" not in received or len(received) < end_of(received):
            part = connection.recv(65536)
            if not part:
                break
            received += part
    answer_head, _, answer_body = received.partition(b"\r\n\r\n")
    return answer_head.decode(), answer_body.decode()


def end_of(received: bytes) -> int:
    """Where an answer with a Content-Length ends."""
    head, _, _ = received.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(head) + 4 + int(lengths[0].split(b":")[1]) if lengths else 2**62
