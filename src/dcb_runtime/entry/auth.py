"""Bearer tokens: who may use which routes. Never open: without a proper secret every answer is a refusal."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from dcb_runtime.entry.http import HttpRefusal
from dcb_runtime.errors import ErrorKind
from dcb_runtime.limits import TOKEN_CHARACTERS_MIN, TOKENS_PER_SECRET_MAX

UNAUTHORIZED = ErrorKind(
    "unauthorized", 401, "send the header Authorization: Bearer TOKEN with the token that is meant for this route"
)
AUTH_NOT_CONFIGURED = ErrorKind(
    "auth_not_configured",
    503,
    "this service has no usable token for this route; set the secret to one token, or to two separated by a comma "
    "while one replaces the other, each of at least 16 printable ASCII characters without spaces",
)


@dataclass(frozen=True)
class Secrets:
    """The configured secrets as they are; ``None`` when one is not set."""

    api_token: str | None
    operator_token: str | None


class TokenGate:
    """Checks the ``Authorization`` header against one secret."""

    def __init__(self, secret: str | None) -> None:
        tokens = configured_tokens(secret)
        self._digests = [_digest(token) for token in tokens]

    def check(self, authorization: str | None) -> None:
        """Return when the header carries one of the tokens; raise the same refusal for every other header."""
        if not self._digests:
            raise AUTH_NOT_CONFIGURED()
        scheme, _, credentials = (authorization or "").partition(" ")
        presented = _digest(credentials.lstrip(" "))
        # Each token is compared, also after a match: the time tells nothing about which one it was.
        matches = [hmac.compare_digest(presented, digest) for digest in self._digests]
        if scheme.lower() != "bearer" or not any(matches):
            raise HttpRefusal(UNAUTHORIZED(), {"www-authenticate": "Bearer"})


def configured_tokens(secret: str | None) -> list[str]:
    """The tokens of a secret; none at all when one part of it is not fit to be a token."""
    tokens = [part.strip(" \t\r\n") for part in (secret or "").split(",")]
    if len(tokens) > TOKENS_PER_SECRET_MAX or not all(_fit(token) for token in tokens):
        return []
    return tokens


def _fit(token: str) -> bool:
    return len(token) >= TOKEN_CHARACTERS_MIN and all("!" <= character <= "~" for character in token)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
