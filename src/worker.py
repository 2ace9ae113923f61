"""The deployable worker: the main module that `wrangler.toml` names."""

from dcb_runtime.cloudflare.entry import EventStore
from dcb_runtime.cloudflare.objects import Allocator, Bootstrap, Tag

__all__ = ["Allocator", "Bootstrap", "Default", "Tag"]


class Default(EventStore):
    """The entry point. A deployment's own hook is plugged in here, see `EventStore.hooks`."""
