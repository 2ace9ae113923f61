"""Which import may write into a tag: the first chunk fixes it, a newer lease epoch raises it, closing ends it."""

from __future__ import annotations

from dataclasses import dataclass

from dcb_runtime.errors import CodedError, ErrorKind
from dcb_runtime.ports import Storage

TAG_OPERATION_REJECTED = ErrorKind(
    "tag_operation_rejected", 409, "the tag refuses this operation; `reason` says why, nothing was written"
)


def rejection(reason: str) -> CodedError:
    """A Tag's refusal in the reference's shape: the reason is contract and stands in ``error`` as well."""
    return CodedError(TAG_OPERATION_REJECTED.code, TAG_OPERATION_REJECTED.status, reason, {"reason": reason})


CLOSED = "bootstrap_closed_permanently"
FENCED = "bootstrap_fencing_or_manifest_mismatch"
NOT_EMPTY = "bootstrap_requires_empty_tag"
CONFLICT = "bootstrap_identity_or_order_conflict"


@dataclass(frozen=True)
class Writer:
    """The import that asks: its id, its manifest's digest, its lease epoch."""

    import_id: str
    manifest_digest: str
    lease_epoch: int


class Admission:
    """The single row that says who may write. Methods run inside the caller's transaction."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def state(self) -> dict[str, object] | None:
        """The admission as ``state`` shows it, ``None`` before the first one."""
        rows = self._storage.exec("SELECT import_id, manifest_digest, lease_epoch, closed FROM admission")
        if not rows:
            return None
        import_id, digest, lease_epoch, closed = rows[0]
        return {"importId": import_id, "manifestDigest": digest, "leaseEpoch": lease_epoch, "closed": bool(closed)}

    def enter(self, writer: Writer, has_events: bool) -> None:
        """Let ``writer`` in and remember it. Raises a rejection (409) for a closed, foreign or fenced tag."""
        rows = self._storage.exec("SELECT import_id, manifest_digest, lease_epoch, closed FROM admission")
        import_id, digest, lease_epoch, closed = rows[0] if rows else (None, None, 0, 0)
        if closed:
            raise rejection(CLOSED)
        if import_id is None and has_events:
            raise rejection(NOT_EMPTY)
        other = import_id is not None and (import_id, digest) != (writer.import_id, writer.manifest_digest)
        if other or writer.lease_epoch < lease_epoch:
            raise rejection(FENCED)
        if import_id is None or writer.lease_epoch > lease_epoch:
            self._write(writer.import_id, writer.manifest_digest, writer.lease_epoch)

    def close(self, import_id: str, lease_epoch: int) -> None:
        """End the admission for good; again is fine. Raises the fencing rejection for another import."""
        rows = self._storage.exec("SELECT import_id, lease_epoch FROM admission")
        if not rows or rows[0][0] != import_id or lease_epoch < rows[0][1]:
            raise rejection(FENCED)
        self._storage.exec("UPDATE admission SET closed = 1")

    def forget(self, writer: Writer) -> bool:
        """Drop the import's claim and demand at least ``writer``'s epoch from then on; whether it held one.

        Raises a rejection when the tag is closed, another import holds it, or a newer epoch was here.
        """
        rows = self._storage.exec("SELECT import_id, manifest_digest, lease_epoch, closed FROM admission")
        import_id, digest, lease_epoch, closed = rows[0] if rows else (None, None, 0, 0)
        if closed:
            raise rejection(CLOSED)
        other = import_id is not None and (import_id, digest) != (writer.import_id, writer.manifest_digest)
        if other or writer.lease_epoch < lease_epoch:
            raise rejection(FENCED)
        self._write(None, None, writer.lease_epoch)
        return import_id is not None

    def _write(self, import_id: str | None, digest: str | None, lease_epoch: int) -> None:
        self._storage.exec(
            "INSERT INTO admission VALUES (1, ?, ?, ?, 0) ON CONFLICT (singleton) DO UPDATE SET "
            "import_id = excluded.import_id, manifest_digest = excluded.manifest_digest, "
            "lease_epoch = excluded.lease_epoch",
            import_id,
            digest,
            lease_epoch,
        )
