"""An activation has one id and one first command."""

from __future__ import annotations

from uuid import UUID

from dcb_runtime.spans.activation import Activation


class Counting:
    """Entropy that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def random_bytes(self, count: int) -> bytes:
        self.calls += 1
        return bytes([self.calls]) * count


def test_only_the_first_command_is_the_first() -> None:
    activation = Activation(Counting())
    assert [activation.take_first() for _ in range(3)] == [True, False, False]


def test_the_id_is_a_random_uuid_that_stays() -> None:
    activation = Activation(Counting())
    assert UUID(activation.id).version == 4
    assert str(UUID(activation.id)) == activation.id == activation.id


def test_no_randomness_is_used_before_the_id_is_asked_for() -> None:
    entropy = Counting()
    activation = Activation(entropy)
    assert entropy.calls == 0
    assert activation.id
    assert activation.id
    assert entropy.calls == 1
