"""The claim on the deployment's hook between verification and READY: one call at a time, by token and expiry."""

from __future__ import annotations

from typing import Final

from dcb_runtime.actor import Platform
from dcb_runtime.bootstrap.control import Control
from dcb_runtime.bootstrap.errors import HOOK_HELD, HOOK_LOST
from dcb_runtime.ports import Storage

HOOK_CLAIM_MS: Final = 30_000
"""How long a claim holds without being renewed; a caller that died is replaced after that."""


class HookClaims:
    """The one claim. Methods run inside the caller's transaction."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._storage = platform.storage

    def claim(self, control: Control) -> tuple[str, int] | None:
        """Claim the hook for the present epoch: (token, expiry in Unix ms); ``None`` while another call holds it."""
        if self._live(control) is not None:
            return None
        token = self._platform.new_uuid()
        return token, self._write(control, token)

    def renew(self, control: Control, token: str) -> int:
        """Extend the claim, even one that expired if nobody took it; the new expiry. Raises ``bootstrap_hook_lost``."""
        rows = self._storage.exec("SELECT token, lease_epoch FROM hook_claim")
        if not rows or (rows[0][0], rows[0][1]) != (token, control.lease_epoch):
            raise HOOK_LOST()
        return self._write(control, token)

    def release(self, token: str) -> bool:
        """Give the claim back, if it is this token's; whether it was."""
        return bool(self._storage.exec("DELETE FROM hook_claim WHERE token = ? RETURNING token", token))

    def require(self, control: Control, token: str | None) -> None:
        """Let ``ready`` pass: with the token of the claim, or without one when nobody holds a claim.

        Raises ``bootstrap_hook_held`` or ``bootstrap_hook_lost`` (409).
        """
        if token is not None:
            self.renew(control, token)
        elif self._live(control) is not None:
            raise HOOK_HELD()

    def clear(self) -> None:
        """Forget any claim."""
        self._storage.exec("DELETE FROM hook_claim")

    def _live(self, control: Control) -> str | None:
        rows = self._storage.exec(
            "SELECT token FROM hook_claim WHERE lease_epoch = ? AND expires_at_ms > ?",
            control.lease_epoch,
            self._platform.clock.now_ms(),
        )
        return str(rows[0][0]) if rows else None

    def _write(self, control: Control, token: str) -> int:
        expires_at_ms = self._platform.clock.now_ms() + HOOK_CLAIM_MS
        self._storage.exec(
            "INSERT OR REPLACE INTO hook_claim VALUES (1, ?, ?, ?)", token, control.lease_epoch, expires_at_ms
        )
        return expires_at_ms


def claimed_until_ms(storage: Storage) -> int | None:
    """When the present claim expires unless it is renewed; it may have expired already."""
    rows = storage.exec("SELECT expires_at_ms FROM hook_claim")
    return int(rows[0][0]) if rows else None
