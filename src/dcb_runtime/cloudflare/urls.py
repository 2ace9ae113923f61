"""Path and query of a request's URL, as the platform wrote it: a host that is no host must not matter."""

from __future__ import annotations


def path_and_query(url: str) -> tuple[str, str]:
    """Take ``scheme://host/path?query`` apart; both parts stay percent-encoded. Never raises."""
    target = url.partition("://")[2].partition("#")[0]
    place, _, query = target.partition("?")
    slash = place.find("/")
    return (place[slash:] if slash >= 0 else "/"), query
