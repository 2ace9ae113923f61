"""Every limit of the service, named and with its unit. Each is checked where its input enters.

The platform's own limits (2 MB a value or row, 100 binds, 32 MiB an RPC message, 100 MB a request body,
10 GB an object) are Cloudflare's: https://developers.cloudflare.com/durable-objects/platform/limits/.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Events (design: tags, types and payloads).
TAG_CHARACTERS_MAX: Final = 256
TAGS_PER_EVENT_MAX: Final = 32
EVENT_TYPE_CHARACTERS_MAX: Final = 256
PAYLOAD_BYTES_MAX: Final = 196_608
PAYLOAD_DEPTH_MAX: Final = 500
METADATA_CHARACTERS_MAX: Final = 1024
SERVICE_ID_CHARACTERS_MAX: Final = 96
IMPORT_ID_CHARACTERS_MAX: Final = 256
SOURCE_ID_CHARACTERS_MAX: Final = 1024

# Pages and chunks: whichever of the two bounds comes first ends a page.
READ_PAGE_EVENTS_MAX: Final = 1000
READ_PAGE_BYTES_MAX: Final = MIB
CHUNK_EVENTS_MAX: Final = 1000
CHUNK_BYTES_MAX: Final = MIB

# Bodies and fan-out.
INLINE_DUMP_BYTES_MAX: Final = 4 * MIB
PLAN_BODY_BYTES_MAX: Final = INLINE_DUMP_BYTES_MAX + 64 * KIB
BODY_BYTES_MAX: Final = 64 * KIB
OBJECTS_AT_A_TIME_MAX: Final = 8

# Import: leases, clocks and the coordinator's bookkeeping.
LEASE_MS: Final = 30_000
WATERMARK_AHEAD_MS_MAX: Final = 86_400_000
RELEASED_COMMANDS_MAX: Final = 512

# The entry Worker: credentials, pages by default, and how long one request waits for an object's own work.
TOKEN_CHARACTERS_MIN: Final = 16
TOKENS_PER_SECRET_MAX: Final = 2
EXPORT_PAGE_EVENTS_DEFAULT: Final = 128
TAG_PAGE_EVENTS_DEFAULT: Final = 100
IMPORT_WAIT_MS: Final = 20_000
LOG_WAIT_MS: Final = 5_000
WAIT_STEP_MS_MIN: Final = 20
WAIT_STEP_MS_MAX: Final = 500
HOOK_RENEW_MS: Final = LEASE_MS // 3

# JavaScript's safe integers: every integer on the wire stays below 2**53.
SAFE_INTEGER_MAX: Final = 2**53 - 1
