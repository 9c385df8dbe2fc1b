"""Whether a store honours preconditions: found out once, before the first commit to it.

Some S3-compatible servers ignore `If-None-Match` and answer every create-only write with success. On such a
store two writers overwrite each other's commits, and both are told that they won. So two create-only writes
of one name are tried: a store that lets both succeed is refused.

A race is not tried here; `make store-conformance URL=...` does that.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress

from delta_core.errors import AmbiguousWriteError, ObjectExistsError, StorageError, UnsafeStoreError

PROBE_DIRECTORY = "_deltaward/probe"
"""Where the two writes go, below the table's root."""

_TRIES = 5

_outcomes: dict[str, bool] = {}

# One for each place: a server that hangs keeps nobody from another. Both change in single steps of a dict.
_turns: dict[str, threading.Lock] = {}
# The thread that has a turn is not in the child, and would never give it back there.
os.register_at_fork(after_in_child=_turns.clear)


def require_preconditions(
    place: str, *, create: Callable[[str, bytes], None], delete: Callable[[str], None], uri: str
) -> None:
    """Make sure that the store refuses to create what exists.

    Args:
        place: names the service and bucket; of each only the first call asks, and others of it wait.
        create: the store's create-only write.
        delete: the store's delete; that it is not allowed does no harm.
        uri: the table's, for the message.

    Raises:
        UnsafeStoreError: the second write of a name succeeded.
        StorageError: as the writes; the next call asks again.

    Cost: three requests for each place and process.
    """
    safe = _outcomes.get(place)
    if safe is None:
        with _turns.setdefault(place, threading.Lock()):
            safe = _outcomes.get(place)
            if safe is None:
                safe = _outcomes[place] = _refuses_a_second(create, delete)
    if not safe:
        raise UnsafeStoreError(
            f"The store of {uri!r} lets two writers create the same object.",
            cause="It ignores the precondition of create-only writes, so commits would overwrite each other.",
            fix="Use a store that honours If-None-Match (see docs/stores.md), or S3 with DynamoDB.",
        )


def forget_probes() -> None:
    """Ask every store again."""
    _outcomes.clear()


def _refuses_a_second(create: Callable[[str, bytes], None], delete: Callable[[str], None]) -> bool:
    for _ in range(_TRIES):
        path = f"{PROBE_DIRECTORY}/{uuid.uuid4()}"
        try:
            try:
                create(path, b"first")
            except ObjectExistsError:
                # Stores say so of writers that met, too, and of a first attempt of the same one: the name may
                # be taken or free.
                continue
            create(path, b"second")
        except ObjectExistsError:
            return True
        finally:
            with suppress(StorageError):
                delete(path)
        return False
    raise AmbiguousWriteError(
        "Whether the store honours preconditions cannot be told.",
        cause=f"{_TRIES} times it answered that a new name is taken.",
        fix="Try again when the store is at rest.",
    )
