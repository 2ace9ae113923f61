"""The one table of span attributes, named as OpenTelemetry names them where it does."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dcb_runtime.spans.port import Command, Done

Attribute: TypeAlias = str | int | bool

ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dcb.operation": "the command: a route template or an object's route",
        "dcb.actor.class": "entry, allocator, tag or bootstrap",
        "dcb.service.id": "the service, once it is known to be a proper id",
        "dcb.actor.key_hash": "SHA-256 of the object's identity; tells tags apart without naming one",
        "dcb.command.id": "the attempt id of an append or the id of a coordinator's command",
        "dcb.outcome": "ok, conflict (409), rejected (other 4xx) or error (5xx or an exception)",
        "faas.instance": "the activation: one life of an object in memory",
        "faas.coldstart": "whether this is the activation's first command",
        "http.response.status_code": "the answer's status",
        "error.type": "of an error only: the status, or the exception's type",
    }
)
"""Every attribute that a span may carry, with its meaning."""

_COMMAND_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def start_attributes(command: Command) -> dict[str, Attribute]:
    """What is known when the span starts. An id of another shape than an id's is left out: it may be anything."""
    found: dict[str, Attribute] = {"dcb.operation": command.name, "dcb.actor.class": command.actor_class}
    if command.service_id is not None:
        found["dcb.service.id"] = command.service_id
    if command.actor_key_hash is not None:
        found["dcb.actor.key_hash"] = command.actor_key_hash
    if command.command_id is not None and _COMMAND_ID.fullmatch(command.command_id):
        found["dcb.command.id"] = command.command_id
    if command.activation_id is not None:
        found["faas.instance"] = command.activation_id
        found["faas.coldstart"] = command.activation_first
    return found


def end_attributes(done: Done) -> dict[str, Attribute]:
    """What is known when the work has ended."""
    found: dict[str, Attribute] = {"dcb.outcome": done.outcome.value}
    if done.status is not None:
        found["http.response.status_code"] = done.status
    if done.error_type is not None:
        found["error.type"] = done.error_type
    return found
