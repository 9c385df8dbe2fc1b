"""A probe whether a store honours preconditions, made once before the first commit to it.

Some S3-compatible servers ignore `If-None-Match` and answer every create-only write with success. On such a
store two writers overwrite each other's commits, and the store reports success to both. The probe makes two
create-only writes of one name: a store on which both succeed is refused.

The probe does not race writers; `make store-conformance URL=...` does.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress

from delta_core.errors import AmbiguousWriteError, ObjectExistsError, StorageError, UnsafeStoreError

PROBE_DIRECTORY = "_deltaward/probe"
"""The directory of the probe's objects, below the table's root."""

_TRIES = 5

_outcomes: dict[str, bool] = {}

# One lock per place, so that a server that hangs blocks no other. Single dict operations are atomic.
_locks: dict[str, threading.Lock] = {}
# In a forked child the thread that holds a lock does not exist and would never release it.
os.register_at_fork(after_in_child=_locks.clear)


def require_preconditions(
    place: str, *, create: Callable[[str, bytes], None], delete: Callable[[str], None], uri: str
) -> None:
    """Check that the store refuses to create an object that exists.

    Args:
        place: identifies the service and the bucket; only the first call for a place probes, others wait.
        create: the store's create-only write.
        delete: the store's delete; it may fail without consequences.
        uri: the table's URI, for the message.

    Raises:
        UnsafeStoreError: the second write of a name succeeded.
        StorageError: a write failed; the next call probes again.

    Cost: three requests for each place and process.
    """
    safe = _outcomes.get(place)
    if safe is None:
        with _locks.setdefault(place, threading.Lock()):
            safe = _outcomes.get(place)
            if safe is None:
                safe = _outcomes[place] = _refuses_second_create(create, delete)
    if not safe:
        raise UnsafeStoreError(
            f"The store of {uri!r} allows two writers to create the same object.",
            cause="The store ignores the precondition of create-only writes, so commits could overwrite "
            "each other.",
            fix="Use a store that honours If-None-Match (see docs/stores.md), or S3 with DynamoDB.",
        )


def forget_probes() -> None:
    """Forget all outcomes, so that every store is probed again."""
    _outcomes.clear()


def _refuses_second_create(create: Callable[[str, bytes], None], delete: Callable[[str], None]) -> bool:
    for _ in range(_TRIES):
        path = f"{PROBE_DIRECTORY}/{uuid.uuid4()}"
        try:
            try:
                create(path, b"first")
            except ObjectExistsError:
                # Stores also answer this when two writers meet, or to a retry of the first attempt. The name
                # may be taken or free.
                continue
            create(path, b"second")
        except ObjectExistsError:
            return True
        finally:
            with suppress(StorageError):
                delete(path)
        return False
    raise AmbiguousWriteError(
        "It is not known whether the store honours preconditions.",
        cause=f"{_TRIES} times the store answered that a new name is taken.",
        fix="Repeat the write when the store has less load.",
    )
