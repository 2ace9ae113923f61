"""Normal commands and routes at the coordinator: admitted in EMPTY and READY only (reference section 1.3).

Appends do not pass here, the allocator's fence is their gate; these routes are the reference's and stay exact.
"""

from __future__ import annotations

from dcb_runtime.bootstrap.control import Control
from dcb_runtime.bootstrap.errors import (
    BODY_INVALID,
    COMMAND_INVALID,
    COMMAND_REJECTED,
    ROUTE_INVALID,
    ROUTE_REJECTED,
)
from dcb_runtime.limits import RELEASED_COMMANDS_MAX, SAFE_INTEGER_MAX
from dcb_runtime.ports import Reply, Storage
from dcb_runtime.wire import Struct, Text, decode, reply


class RouteBody(Struct):
    """Body of ``POST /route/check``."""

    route: Text


class AdmitBody(Struct):
    """Body of ``POST /command/admit``."""

    command_id: Text


class FinalizeBody(Struct):
    """Body of ``POST /command/finalize``; whatever is wrong with its epoch is a rejection, not a bad body."""

    command_id: Text
    lease_epoch: object = None


class ReleaseBody(Struct):
    """Body of ``POST /command/release``."""

    command_id: Text
    lease_epoch: object = None


class Commands:
    """The admitted and released commands. Methods run inside the caller's transaction."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def check_route(self, control: Control, text: str | None) -> Reply:
        """Whether background work named ``route`` may run now: 200, or 409 ``bootstrap_route_rejected``."""
        body = decode(text, RouteBody, ROUTE_INVALID, syntax=BODY_INVALID)
        if not control.normal:
            raise ROUTE_REJECTED()
        return reply(200, {"admitted": True, "leaseEpoch": control.lease_epoch, "route": body.route})

    def admit(self, control: Control, text: str | None) -> Reply:
        """Admit a command under the present epoch; admitting it again writes nothing."""
        body = decode(text, AdmitBody, COMMAND_INVALID, syntax=BODY_INVALID)
        if not control.normal:
            raise COMMAND_REJECTED()
        # A command that was released and comes back is admitted anew, at the end of the order.
        self._storage.exec("DELETE FROM command WHERE command_id = ? AND released = 1", body.command_id)
        self._storage.exec(
            "INSERT INTO command (command_id, lease_epoch, released) VALUES (?, ?, 0) ON CONFLICT DO NOTHING",
            body.command_id,
            control.lease_epoch,
        )
        return _admitted(control)

    def finalize(self, control: Control, text: str | None) -> Reply:
        """Whether the command still holds: admitted under the present epoch, and nothing planned. Reads only."""
        body = decode(text, FinalizeBody, COMMAND_INVALID, syntax=BODY_INVALID)
        rows = self._storage.exec("SELECT lease_epoch FROM command WHERE command_id = ?", body.command_id)
        holds = _epoch(body.lease_epoch) and rows and rows[0][0] == body.lease_epoch == control.lease_epoch
        if not holds or not control.normal:
            raise COMMAND_REJECTED()
        return _admitted(control)

    def release(self, control: Control, text: str | None) -> Reply:
        """Release an admitted command, in any status; the last 512 released ones are remembered."""
        body = decode(text, ReleaseBody, COMMAND_INVALID, syntax=BODY_INVALID)
        rows = self._storage.exec(
            "DELETE FROM command WHERE command_id = ? AND released = 0 RETURNING lease_epoch", body.command_id
        )
        epoch_given = body.lease_epoch is not None
        if not rows or (epoch_given and not (_epoch(body.lease_epoch) and rows[0][0] == body.lease_epoch)):
            raise COMMAND_REJECTED()
        self._storage.exec(
            "INSERT INTO command (command_id, lease_epoch, released) VALUES (?, ?, 1)", body.command_id, rows[0][0]
        )
        self._storage.exec(
            "DELETE FROM command WHERE released = 1 AND sequence <= (SELECT sequence FROM command WHERE released = 1 "
            "ORDER BY sequence DESC LIMIT 1 OFFSET ?)",
            RELEASED_COMMANDS_MAX,
        )
        return _admitted(control)


def _admitted(control: Control) -> Reply:
    return reply(200, {"leaseEpoch": control.lease_epoch, "admitted": True})


def _epoch(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= SAFE_INTEGER_MAX
