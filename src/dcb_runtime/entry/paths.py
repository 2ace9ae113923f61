"""What a path names: a service, a tag. Each fault has the code of the lane it came by."""

from __future__ import annotations

from dcb_runtime.entry.percent import decode_percent
from dcb_runtime.errors import ErrorKind
from dcb_runtime.rules.events import check_tag
from dcb_runtime.rules.scope import SERVICE_ID_INVALID, is_service_id

BOOTSTRAP_SERVICE_INVALID = ErrorKind("bootstrap_service_invalid", 400, SERVICE_ID_INVALID.text)

_BOOTSTRAP_LANE = "/operator/bootstrap/"


def path_service_id(template: str, segment: str) -> str:
    """The service id of a path's segment. Raises the lane's code when it cannot be one."""
    service_id = decode_percent(segment)
    if service_id is None or not is_service_id(service_id):
        raise (BOOTSTRAP_SERVICE_INVALID if template.startswith(_BOOTSTRAP_LANE) else SERVICE_ID_INVALID)()
    return service_id


def path_tag(segment: str) -> str:
    """The tag of a path's segment. Raises ``tag_invalid``."""
    return check_tag(decode_percent(segment))
