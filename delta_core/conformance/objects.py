"""Checks of one process: access, preconditions, sizes, names, listings."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from delta_core.conformance.check import Context
from delta_core.conformance.expectations import require, require_raises, require_same
from delta_core.errors import (
    AmbiguousWriteError,
    ConfigurationError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
)
from delta_core.schema.partition_values import hive_directory
from delta_core.storage.log_store import LogStore

LARGE_BYTES = 16 << 20
LISTED_OBJECTS = 1_050
"""More than the page of any service."""

ODD_VALUES = (
    *(
        "a b",
        "100%",
        "a%20b",
        "a%2520b",
        "a/b",
        "a:b",
        "a\\b",
        "ü€😀日本",
        "x+y;z=1&w?#",
        "'quoted'",
        "~._-()!*",
    ),
    *("{a}[b]|^`", '"<>,@$', " ", "..", "x" * 300),
)
"""Partition values; their directories have the names that writers give them."""

_CLOCK_TOLERANCE_MS = 60_000
_THREADS = 16


def access(context: Context) -> str:
    """An object is written, read, inspected, listed and, where that is allowed, deleted."""
    store = context.place.store("access")
    context.place.require_fresh()
    store.put("one", b"one")
    require_same(store.read("one"), b"one", "an object that was just written")
    behind_ms = context.clock.now_ms() - store.head("one").modified_ms
    require_same([info.path for info in store.list_directory("")], ["one"], "the listing")
    try:
        store.delete("one")
    except StorePermissionError:
        context.may_delete = False
    if abs(behind_ms) <= _CLOCK_TOLERANCE_MS:
        return "put, get, head and list work"
    return (
        f"put, get, head and list work; the store's clock is {behind_ms / 1000:.0f} s behind this machine's"
    )


def deleting(context: Context) -> str:
    """Objects are deleted; commits do not need it."""
    if not context.may_delete:
        raise StorePermissionError(
            "The store refuses to delete an object that this run wrote.",
            cause="These credentials may not delete.",
            fix="Nothing, if this is a writer that only commits. Vacuum and log cleanup need the permission.",
        )
    store = context.place.store("deleting")
    store.put("one", b"one")
    store.delete("one")
    require_raises(ObjectNotFoundError, partial(store.read, "one"), "reading what was deleted")
    return "what was deleted is gone"


def preconditions(context: Context) -> str:
    """The second create-only write of a name is refused; the start-up probe comes first."""
    store = context.place.store("preconditions")
    for version in range(3):
        path = commit_path(version)
        store.put_if_absent(path, b"first")
        again = partial(store.put_if_absent, path, b"second")
        require_raises(ObjectExistsError, again, "a create-only write of a name that was taken")
        require_same(store.read(path), b"first", "an object that was created twice")
    return "the second of two create-only writes is refused, three times of three"


def ranges(context: Context) -> str:
    """Any part of an object is what was written there."""
    store = context.place.store("ranges")
    data = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(100_000))
    with store.open_output("data.bin") as sink:
        sink.write(data)
    size = len(data)
    asked = [(0, 1), (0, 4096), (size - 8, 8), (size // 2 - 3, 1_000_003), (size - 70_000, 70_000), (0, size)]
    with store.open_input("data.bin") as source:
        require_same(source.size(), size, "the size of an object")
        for begin, length in asked:
            source.seek(begin)
            found = source.read(length)
            require(found == data[begin : begin + length], f"bytes {begin} to {begin + length} are not those")
        source.seek(size)
        require_same(source.read(10), b"", "what is behind the end")
    return f"{len(asked)} ranges of {size >> 20} MiB"


def large_commit(context: Context) -> str:
    """A large object is created whole, in one request, and not a second time."""
    store = context.place.store("large")
    data = hashlib.sha256(b"large").digest() * (LARGE_BYTES // 32)
    began = context.clock.monotonic_seconds()
    store.put_if_absent(commit_path(0), data)
    seconds = context.clock.monotonic_seconds() - began
    again = partial(store.put_if_absent, commit_path(0), b"second")
    require_raises(ObjectExistsError, again, "a create-only write over a large object")
    require(store.read(commit_path(0)) == data, "a large object came back changed")
    return f"{LARGE_BYTES >> 20} MiB created in {seconds:.1f} s"


def odd_names(context: Context) -> str:
    """Partition directories with any sign in their values."""
    store = context.place.store("names")
    names = {f"{hive_directory('p', value)}/part.parquet": value for value in ODD_VALUES}
    # Other writers leave letters as they are.
    names |= {f"p={value}/part.parquet": value for value in ODD_VALUES if not value.isascii()}
    for name, value in names.items():
        store.put(name, value.encode())
    found = {info.path for info in store.walk()}
    require(found == set(names), f"listed are other names: {sorted(found ^ set(names))}")
    for name, value in names.items():
        require_same(store.read(name), value.encode(), f"the content of {name!r}")
        require_same(store.head(name).path, name, "the name of an object")
    return f"{len(names)} names with blanks, percent signs, other alphabets"


def listing(context: Context) -> str:
    """A listing of several pages is whole, in order, and shows at once what was written."""
    store = context.place.store("listing")
    deadline = context.deadline()
    names = [f"_delta_log/{number:020d}.checkpoint.parquet" for number in range(LISTED_OBJECTS)]

    def write(name: str) -> bool:
        if context.is_over(deadline):
            return False
        store.put(name, b"")
        return True

    with ThreadPoolExecutor(_THREADS) as pool:
        written = [name for name, done in zip(names, pool.map(write, names), strict=True) if done]
    found = [info.path for info in store.list_directory("_delta_log")]
    require(len(set(found)) == len(found), "a listing shows an object twice")
    _require_listed(store, sorted(found) == sorted(written), f"{len(found)} of {len(written)} objects")
    require(found == sorted(found), "a listing is not in order")
    middle = written[len(written) // 2]
    after = store.list_directory("_delta_log", start_after=middle.removeprefix("_delta_log/"))
    _require_listed(store, [info.path for info in after] == written[len(written) // 2 + 1 :], "a tail")
    return f"{len(written)} objects, listed at once, in order, and from a name on"


def _require_listed(store: LogStore, holds: bool, what: str) -> None:
    """A store that does not promise it may show objects late: readers look for the next version then."""
    require(
        holds or not store.consistent_listing,
        f"A listing right after the writes shows {what}.",
        cause="Listings lag behind writes.",
        fix="A proxy or cache between here and the store may answer listings; take it away.",
    )


def timeouts(context: Context) -> str:
    """A write that was given up on is there whole or not at all, and its writer finds out which."""
    patient = context.place.store("timeouts")
    if not patient.remote:
        return "a local write has no answer that could be lost"
    deadline, told = context.deadline(), {"answered": 0, "lost": 0}
    for version, milliseconds in enumerate((3, 8, 20, 50, 120, 300)):
        data = f"written by the attempt of {milliseconds} ms\n".encode() * 2_000
        try:
            hasty = context.place.store("timeouts", timeout=f"{milliseconds}ms")
        except ConfigurationError:
            return "not tried: the store takes no time limit, or has one already"
        try:
            hasty.put_if_absent(commit_path(version), data)
            told["answered"] += 1
        except StorageError:
            told["lost"] += 1
        settle(context, patient, commit_path(version), data)
        if context.is_over(deadline):
            break
    return f"{told['lost']} writes were given up on and settled by reading back, {told['answered']} answered"


def settle(context: Context, store: LogStore, path: str, data: bytes) -> None:
    """Do what a commit does after an unclear answer: the same bytes again, then read; twice, apart."""
    for attempt in range(10):
        try:
            store.put_if_absent(path, data)
        except (ObjectExistsError, AmbiguousWriteError):
            pass
        except StorageError as error:
            if not error.retryable or attempt == 9:
                raise
            context.clock.sleep(0.2)
            continue
        try:
            found = store.read(path)
        except ObjectNotFoundError:
            # "Exists" of a write that was cut off and did not land: again.
            context.clock.sleep(0.2)
            continue
        require(found == data, "an object that one writer wrote, more than once, holds other bytes")
        context.clock.sleep(0.2)
        require(store.read(path) == data, "an object changed after it had been read back")
        return
    require(False, "a name is said to be taken and there is nothing to read")


def commit_path(version: int) -> str:
    """The name of a commit: stores with a log of their own decide about such names only."""
    return f"_delta_log/{version:020d}.json"
