"""The claim file: the first object that a clone with history writes. It marks the location as the clone's.

Files of such a clone keep their names from the source. An existing object may count as a copy only when its
location is known to belong to the clone.
"""

from __future__ import annotations

import orjson

from delta_core.errors import CloneError, ObjectExistsError, ObjectNotFoundError, StorageError
from delta_core.leases.lease_files import RESERVED_DIRECTORY
from delta_core.storage.log_store import LogStore

CLAIM_PATH = f"{RESERVED_DIRECTORY}/history-of.json"

_FORMAT_VERSION = 1


def require_claim(target: LogStore, *, table_id: str) -> None:
    """Claim an empty location for the clone of a table, or check that it is already claimed for that table.

    One request; in an empty location a listing and two more requests.

    Args:
        target: the clone's store.
        table_id: the source's `metaData.id`.

    Raises:
        CloneError: the location is claimed for another table, or holds other files.
        StorageError: the claim could not be written or read.
    """
    claim = orjson.dumps({"formatVersion": _FORMAT_VERSION, "tableId": table_id})
    existing = _read(target)
    if existing is None:
        other = next(iter(target.walk()), None)
        # A concurrent clone of the same table may have just written the claim, and nothing else.
        if other is not None and other.path != CLAIM_PATH:
            raise _occupied(
                target,
                f"The location has the file {other.path!r}, but it has no claim of a clone with history.",
            )
        try:
            target.put_if_absent(CLAIM_PATH, claim)
            return
        except ObjectExistsError:
            existing = _read(target)
        except StorageError:
            # The response may have been lost. The stored claim shows which table has the location.
            existing = _read(target)
            if existing is None:
                raise
        target.persist([CLAIM_PATH])
    if existing != claim:
        raise _occupied(target, "The location is claimed for the clone of another table.")


def _read(target: LogStore) -> bytes | None:
    try:
        return target.read(CLAIM_PATH)
    except ObjectNotFoundError:
        return None


def _occupied(target: LogStore, cause: str) -> CloneError:
    return CloneError(
        f"No table can be cloned with its history to {target.uri}.",
        cause=cause,
        fix="Choose an empty location.",
    )
