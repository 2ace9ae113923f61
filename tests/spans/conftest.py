"""What the tests of span hooks share: a guard that does not wait for a hook for long."""

from __future__ import annotations

import pytest

from dcb_runtime.spans import guard


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "HOOK_PATIENCE_MS", 5)
