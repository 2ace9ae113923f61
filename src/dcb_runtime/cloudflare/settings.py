"""What a deployment may choose by its variables."""

from __future__ import annotations

from typing import Any, Final

from dcb_runtime.cloudflare.spans import runtime_spans
from dcb_runtime.spans.none import NO_SPANS
from dcb_runtime.spans.port import Spans

TRACING_VARIABLE: Final = "TRACING"
CLOUDFLARE_TRACING: Final = "cloudflare"


def text_setting(env: Any, name: str) -> str | None:
    """A variable or secret of the deployment as text, ``None`` when it is not set."""
    value = getattr(env, name, None)
    return value if isinstance(value, str) else None


def chosen_spans(env: Any) -> Spans:
    """The span hook that the variable ``TRACING`` names: ``cloudflare``, or none when it is not set."""
    return runtime_spans() if text_setting(env, TRACING_VARIABLE) == CLOUDFLARE_TRACING else NO_SPANS
