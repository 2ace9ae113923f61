"""Servers that the tests of one module share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.workerd.lab import Lab, lab_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """The laboratory worker: use services of your own."""
    with lab_server() as server:
        yield Lab(server)
