"""Who may come in: only the bearer of a configured token, and nobody when none is configured."""

from __future__ import annotations

import pytest

from dcb_runtime.entry.auth import Secrets, TokenGate
from tests.entry.doubles import API, OPERATOR, World

STATUS = "/operator/bootstrap/orders/status"
LONG = "0123456789abcdef"
OTHER = "fedcba9876543210"


def knock(secret: str | None, authorization: str | None) -> tuple[int, str]:
    """The answer to a request for a route below ``/services`` that does not exist: 404 once inside."""
    headers = {} if authorization is None else {"authorization": authorization}
    return World(secrets=Secrets(secret, None)).ask("GET", "/services/orders/nothing", headers=headers).code


INSIDE = (404, "not_found")
OUTSIDE = (401, "unauthorized")
CLOSED = (503, "auth_not_configured")


@pytest.mark.parametrize(
    ("authorization", "answer"),
    [
        (f"Bearer {LONG}", INSIDE),
        (f"bearer {LONG}", INSIDE),
        (f"BEARER {LONG}", INSIDE),
        (f"Bearer  {LONG}", INSIDE),
        (None, OUTSIDE),
        ("", OUTSIDE),
        ("Bearer", OUTSIDE),
        ("Bearer ", OUTSIDE),
        (LONG, OUTSIDE),
        (f"Basic {LONG}", OUTSIDE),
        (f"Bearer\t{LONG}", OUTSIDE),
        (f" Bearer {LONG}", OUTSIDE),
        (f"Bearer {LONG[:-1]}", OUTSIDE),
        (f"Bearer {LONG}0", OUTSIDE),
        (f"Bearer {LONG} ", OUTSIDE),
        (f"Bearer {LONG.upper()}", OUTSIDE),
        (f"Bearer {OTHER}", OUTSIDE),
        (f"Bearer {LONG}, Bearer {LONG}", OUTSIDE),
        (f"Bearer {OTHER}, Bearer {LONG}", OUTSIDE),
        ("Bearer \u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc", OUTSIDE),
        (f"Bearer {LONG}\u00fc", OUTSIDE),
        ("Bearer \ud800", OUTSIDE),
    ],
)
def test_only_the_exact_token_comes_in(authorization: str | None, answer: tuple[int, str]) -> None:
    assert knock(LONG, authorization) == answer


@pytest.mark.parametrize("token", [LONG, OTHER])
@pytest.mark.parametrize("secret", [f"{LONG},{OTHER}", f"{OTHER},{LONG}", f" {LONG} , {OTHER}\n"])
def test_while_a_token_is_rotated_both_come_in(secret: str, token: str) -> None:
    assert knock(secret, f"Bearer {token}") == INSIDE


@pytest.mark.parametrize("authorization", [f"Bearer {LONG},{OTHER}", f"Bearer {LONG},", "Bearer ,"])
def test_the_secret_as_a_whole_is_no_token(authorization: str) -> None:
    assert knock(f"{LONG},{OTHER}", authorization) == OUTSIDE


@pytest.mark.parametrize(
    "secret",
    [
        None,
        "",
        ",",
        " " * 20,
        LONG[:-1],
        f"{LONG},",
        f",{LONG}",
        f"{LONG},{OTHER[:-1]}",
        f"{LONG[:-1]},{OTHER}",
        f"{LONG},{OTHER},{LONG}x",
        f"{LONG} {OTHER}",
        f"{LONG}\u00fc",
        f"{LONG}\x00",
    ],
)
@pytest.mark.parametrize("authorization", [None, "Bearer ", f"Bearer {LONG}", f"Bearer {OTHER}", "Bearer ,"])
def test_without_a_proper_secret_nobody_comes_in(secret: str | None, authorization: str | None) -> None:
    assert knock(secret, authorization) == CLOSED


@pytest.mark.parametrize(("length", "answer"), [(15, CLOSED), (16, INSIDE)])
def test_a_token_has_at_least_sixteen_characters(length: int, answer: tuple[int, str]) -> None:
    token = "t" * length
    assert knock(token, f"Bearer {token}") == answer


def test_missing_and_wrong_credentials_get_the_same_answer() -> None:
    missing = World().ask("GET", STATUS, headers={}).response
    wrong = World().ask("GET", STATUS, headers={"authorization": "Bearer wrong"}).response
    assert missing == wrong
    assert missing.status == 401
    assert missing.headers["www-authenticate"] == "Bearer"


def test_each_lane_has_its_own_token() -> None:
    world = World()
    assert world.ask("GET", "/operator/nothing", headers={"authorization": f"Bearer {API}"}).code == OUTSIDE
    assert world.ask("GET", "/services/nothing", headers={"authorization": f"Bearer {OPERATOR}"}).code == OUTSIDE
    assert world.ask("GET", "/operator/nothing", headers={"authorization": f"Bearer {OPERATOR}"}).code == INSIDE
    assert world.ask("GET", "/services/nothing", headers={"authorization": f"Bearer {API}"}).code == INSIDE


@pytest.mark.parametrize(
    "path",
    [
        "/operator",
        "/operator/",
        "/operator/nothing",
        "/operator/bootstrap/%zz/status",
        "/services",
        "/services/a/append",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_credentials_are_checked_before_anything_is_looked_up(method: str, path: str) -> None:
    world = World()
    assert world.ask(method, f"{path}?x=%zz", headers={}).code == OUTSIDE
    assert world.objects.asked == []


@pytest.mark.parametrize("path", ["/%6fperator/bootstrap/orders/status", "//operator/bootstrap/orders/status"])
def test_another_spelling_of_the_prefix_leads_nowhere(path: str) -> None:
    world = World()
    assert world.ask("GET", path, headers={}).code == INSIDE
    assert world.objects.asked == []


def test_every_token_is_compared_whatever_matched_before(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(presented: bytes, digest: bytes) -> bool:
        compared.append(digest)
        return presented == digest

    monkeypatch.setattr("dcb_runtime.entry.auth.hmac.compare_digest", compare)
    TokenGate(f"{LONG},{OTHER}").check(f"Bearer {LONG}")
    assert len(set(compared)) == 2
    assert all(len(digest) == 32 for digest in compared)


def test_no_answer_and_no_line_names_a_token() -> None:
    world = World()
    got = world.ask("GET", STATUS, headers={"authorization": f"Bearer {OPERATOR}x"})
    assert OPERATOR not in got.response.body
    assert OPERATOR not in "".join(world.lines)
