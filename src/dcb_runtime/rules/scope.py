"""Names of Durable Objects: ``{serviceId}/{class}/{identity}``, always exactly three parts.

The identity is ``allocator``, ``coordinator`` or the tag. In a name ``%`` and ``/`` of a tag are percent-encoded
(``%25``, ``%2F``) and nothing else is, so that each tag has one name and each name one tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dcb_runtime.errors import ErrorKind
from dcb_runtime.limits import SERVICE_ID_CHARACTERS_MAX

SERVICE_ID_INVALID = ErrorKind(
    "service_id_invalid",
    400,
    f"a service id is 1 to {SERVICE_ID_CHARACTERS_MAX} of A-Z a-z 0-9 . _ - and begins with a letter or a digit",
)

ALLOCATOR: Final = "allocator"
TAG: Final = "tag"
BOOTSTRAP: Final = "bootstrap"

ALLOCATOR_IDENTITY: Final = "allocator"
COORDINATOR_IDENTITY: Final = "coordinator"

_FIXED_IDENTITIES: Final = {ALLOCATOR: ALLOCATOR_IDENTITY, BOOTSTRAP: COORDINATOR_IDENTITY}
_SERVICE_ID: Final = re.compile(f"[A-Za-z0-9][A-Za-z0-9._-]{{0,{SERVICE_ID_CHARACTERS_MAX - 1}}}")


class ScopeNameError(ValueError):
    """A name that cannot be built or taken apart: a fault of the program, not of its input."""


@dataclass(frozen=True)
class Scope:
    """Whom a name belongs to; ``identity`` is decoded."""

    service_id: str
    actor_class: str
    identity: str


def is_service_id(text: str) -> bool:
    """Whether ``text`` can be a service id."""
    return _SERVICE_ID.fullmatch(text) is not None


def check_service_id(text: str) -> str:
    """Return ``text`` when it can be a service id. Raises ``SERVICE_ID_INVALID``."""
    if not is_service_id(text):
        raise SERVICE_ID_INVALID()
    return text


def object_name(service_id: str, actor_class: str, identity: str) -> str:
    """The name of an object; ``identity`` is encoded here. Raises ``ScopeNameError``."""
    if not is_service_id(service_id):
        raise ScopeNameError("not a service id")
    if actor_class != TAG and _FIXED_IDENTITIES.get(actor_class) != identity:
        raise ScopeNameError("no such class, or not the identity of that class")
    if not identity:
        raise ScopeNameError("the identity is empty")
    return f"{service_id}/{actor_class}/{_encoded(identity)}"


def allocator_object_name(service_id: str) -> str:
    """The name of a service's allocator. Raises ``ScopeNameError``."""
    return object_name(service_id, ALLOCATOR, ALLOCATOR_IDENTITY)


def bootstrap_object_name(service_id: str) -> str:
    """The name of a service's bootstrap coordinator. Raises ``ScopeNameError``."""
    return object_name(service_id, BOOTSTRAP, COORDINATOR_IDENTITY)


def tag_object_name(service_id: str, tag: str) -> str:
    """The name of a tag's object. Raises ``ScopeNameError``."""
    return object_name(service_id, TAG, tag)


def parse_object_name(name: str) -> Scope:
    """Take a name apart. Raises ``ScopeNameError`` for a name that ``object_name`` does not make."""
    parts = name.split("/")
    if len(parts) != 3:
        raise ScopeNameError("a name has exactly three parts")
    service_id, actor_class, encoded = parts
    scope = Scope(service_id, actor_class, encoded.replace("%2F", "/").replace("%25", "%"))
    if object_name(scope.service_id, scope.actor_class, scope.identity) != name:
        raise ScopeNameError("the identity is not encoded as names are")
    return scope


def _encoded(identity: str) -> str:
    return identity.replace("%", "%25").replace("/", "%2F")
