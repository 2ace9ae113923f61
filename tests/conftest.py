"""Fixtures that every test may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.runtime.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The deployable worker on real workerd, shared by all tests of a run: use services of your own."""
    with Server() as running:
        yield running
