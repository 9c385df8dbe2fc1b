"""Whose place it is: the first thing that a clone with history writes, and by which it knows its place again.

Files of a clone keep the names that they have in the source, so what lies at such a name must be known to be
the clone's own before it is taken for a copy.
"""

from __future__ import annotations

import orjson

from delta_core.errors import CloneError, ObjectExistsError, ObjectNotFoundError, StorageError
from delta_core.storage.lease_files import RESERVED_DIRECTORY
from delta_core.storage.log_store import LogStore

CLAIM_PATH = f"{RESERVED_DIRECTORY}/history-of.json"

_FORMAT_VERSION = 1


def require_claim(target: LogStore, *, table_id: str) -> None:
    """Claim a free place for the clone of a table, or find that it is claimed for it.

    One request; in a free place a listing and two.

    Args:
        target: the clone's store.
        table_id: the source's `metaData.id`.

    Raises:
        CloneError: the place is another table's, or holds other files.
        StorageError: the claim could not be written or read.
    """
    claim = orjson.dumps({"formatVersion": _FORMAT_VERSION, "tableId": table_id})
    found = _read(target)
    if found is None:
        strange = next(iter(target.walk()), None)
        # Whoever claims it for the same table at this moment has written the claim alone.
        if strange is not None and strange.path != CLAIM_PATH:
            raise _taken(target, f"{strange.path!r} is there, and no clone with its history was begun.")
        try:
            target.put_if_absent(CLAIM_PATH, claim)
            return
        except ObjectExistsError:
            found = _read(target)
        except StorageError:
            # An answer may have been lost; whoever has the place is in what is there.
            found = _read(target)
            if found is None:
                raise
        target.persist([CLAIM_PATH])
    if found != claim:
        raise _taken(target, "It was begun as the clone of another table.")


def _read(target: LogStore) -> bytes | None:
    try:
        return target.read(CLAIM_PATH)
    except ObjectNotFoundError:
        return None


def _taken(target: LogStore, cause: str) -> CloneError:
    return CloneError(
        f"No table can be cloned with its history to {target.uri}.", cause=cause, fix="Choose an empty place."
    )
