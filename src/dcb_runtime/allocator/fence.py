"""The import fence: while an import holds it the allocator decides nothing and issues nothing.

The fence names the one import (id, digest) and the lowest lease epoch that may still write. It only
ever rises, so a call of an older epoch, however late it arrives, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from dcb_runtime.errors import ErrorKind
from dcb_runtime.ports import Storage

BOOTSTRAP_IN_PROGRESS = ErrorKind(
    "bootstrap_in_progress", 409, "an import holds this service; wait until it is READY, or abort and reset it"
)
ALLOCATOR_NOT_FRESH = ErrorKind(
    "allocator_not_fresh", 409, "the service has issued positions or suids already; import into a fresh service"
)
FENCE_EPOCH_STALE = ErrorKind(
    "fence_epoch_stale", 409, "a newer lease epoch was seen here; read the status and go on with that one"
)
FENCE_MISMATCH = ErrorKind(
    "fence_mismatch", 409, "the import that holds the fence is another one; read the status of the bootstrap"
)
BOOTSTRAP_LINEAGE_MISMATCH = ErrorKind(
    "bootstrap_lineage_mismatch",
    409,
    "manifest.target.allocatorLineageId is not this service's own; export again for this target",
)


@dataclass(frozen=True)
class Holder:
    """Who asks: the import's id, its manifest's digest and the lease epoch it works under."""

    import_id: str
    digest: str
    lease_epoch: int


class Fence:
    """The single row that gates every write of an import. All methods run inside the caller's transaction."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def mode(self) -> str:
        """``open`` or ``importing``."""
        return str(self._row()[0])

    def digest(self) -> str:
        """The digest of the manifest that the fence was last up for, empty before the first."""
        return self._row()[2] or ""

    def refuse_while_importing(self) -> None:
        """Raise ``bootstrap_in_progress`` (409) while an import holds the fence."""
        if self.mode() != "open":
            raise BOOTSTRAP_IN_PROGRESS()

    def raise_for(self, holder: Holder, fresh: bool) -> None:
        """Put the fence up for ``holder``, or raise its epoch; the same again changes nothing.

        Raises ``fence_epoch_stale`` for an older epoch, ``fence_mismatch`` when another import holds it,
        ``allocator_not_fresh`` when the fence is down and the service is not ``fresh``.
        """
        mode, import_id, digest, lease_epoch, outcome = self._row()
        if holder.lease_epoch < lease_epoch:
            raise FENCE_EPOCH_STALE()
        if mode == "importing" and (import_id, digest) != (holder.import_id, holder.digest):
            raise FENCE_MISMATCH()
        if mode == "open" and (not fresh or outcome == "opened"):
            raise ALLOCATOR_NOT_FRESH()
        self._write("importing", holder, holder.lease_epoch, None)

    def require(self, holder: Holder) -> None:
        """Let a write of the import pass, and remember its epoch.

        Raises ``fence_epoch_stale`` or ``fence_mismatch`` (409) when ``holder`` does not hold the fence.
        """
        mode, import_id, digest, lease_epoch, _ = self._row()
        if holder.lease_epoch < lease_epoch:
            raise FENCE_EPOCH_STALE()
        if mode != "importing" or (import_id, digest) != (holder.import_id, holder.digest):
            raise FENCE_MISMATCH()
        if holder.lease_epoch > lease_epoch:
            self._write("importing", holder, holder.lease_epoch, None)

    def lower(self, holder: Holder, outcome: str) -> bool:
        """Take the fence down after READY (``opened``) or for a clean start (``reset``).

        No epoch up to the holder's may write or fence again. Returns whether anything changed: ``False``
        means that this holder did it before. Raises as ``require``.
        """
        mode, import_id, digest, lease_epoch, done = self._row()
        mine = (import_id, digest) == (holder.import_id, holder.digest)
        if mode == "open" and mine and done == outcome and lease_epoch == holder.lease_epoch + 1:
            return False
        self.require(holder)
        self._write("open", holder, holder.lease_epoch + 1, outcome)
        return True

    def cancel(self, holder: Holder) -> None:
        """Make sure that the fence of a plan that was taken back is down and stays down, even if it never came up.

        Raises ``fence_epoch_stale`` or ``fence_mismatch`` when a newer or another import holds the fence.
        """
        mode, _, _, lease_epoch, outcome = self._row()
        if lease_epoch > holder.lease_epoch and mode == "open":
            return
        if mode == "importing":
            self.require(holder)
        elif outcome == "opened":
            raise FENCE_MISMATCH()
        self._write("open", holder, holder.lease_epoch + 1, "reset")

    def _row(self) -> tuple[str, str | None, str | None, int, str | None]:
        row = self._storage.exec("SELECT mode, import_id, digest, lease_epoch, outcome FROM fence")[0]
        return row[0], row[1], row[2], row[3], row[4]

    def _write(self, mode: str, holder: Holder, lease_epoch: int, outcome: str | None) -> None:
        self._storage.exec(
            "UPDATE fence SET mode = ?, import_id = ?, digest = ?, lease_epoch = ?, outcome = ?",
            mode,
            holder.import_id,
            holder.digest,
            lease_epoch,
            outcome,
        )
