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
"""More than one page of any service."""

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
"""Partition values; the names of their directories are those that writers use."""

_CLOCK_TOLERANCE_MS = 60_000
_THREADS = 16


def access(context: Context) -> str:
    """An object can be written, read, inspected, listed and, where permitted, deleted."""
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
    """Objects can be deleted; commits do not need it."""
    if not context.may_delete:
        raise StorePermissionError(
            "The store refuses to delete an object of this run.",
            cause="These credentials do not permit deleting.",
            fix="Grant the permission for vacuum and log cleanup. Writers that only commit do not need it.",
        )
    store = context.place.store("deleting")
    store.put("one", b"one")
    store.delete("one")
    require_raises(ObjectNotFoundError, partial(store.read, "one"), "reading a deleted object")
    return "a deleted object is missing afterwards"


def preconditions(context: Context) -> str:
    """The second create-only write of a name is refused. The probe of the first commit runs before."""
    store = context.place.store("preconditions")
    for version in range(3):
        path = commit_path(version)
        store.put_if_absent(path, b"first")
        again = partial(store.put_if_absent, path, b"second")
        require_raises(ObjectExistsError, again, "a create-only write of a name that is taken")
        require_same(store.read(path), b"first", "an object that was created twice")
    return "the second of two create-only writes is refused, in three of three attempts"


def ranges(context: Context) -> str:
    """Every range of an object has the written bytes."""
    store = context.place.store("ranges")
    data = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(100_000))
    with store.open_output("data.bin") as sink:
        sink.write(data)
    size = len(data)
    middle = (size // 2 - 3, 1_000_003)
    requested = [(0, 1), (0, 4096), (size - 8, 8), middle, (size - 70_000, 70_000), (0, size)]
    with store.open_input("data.bin") as source:
        require_same(source.size(), size, "the size of an object")
        for begin, length in requested:
            source.seek(begin)
            data_read = source.read(length)
            require(data_read == data[begin : begin + length], f"bytes {begin} to {begin + length} differ")
        source.seek(size)
        require_same(source.read(10), b"", "the content after the end")
    return f"{len(requested)} ranges of {size >> 20} MiB"


def large_commit(context: Context) -> str:
    """A large object is created completely in one request, and only once."""
    store = context.place.store("large")
    data = hashlib.sha256(b"large").digest() * (LARGE_BYTES // 32)
    began = context.clock.monotonic_seconds()
    store.put_if_absent(commit_path(0), data)
    seconds = context.clock.monotonic_seconds() - began
    again = partial(store.put_if_absent, commit_path(0), b"second")
    require_raises(ObjectExistsError, again, "a create-only write over a large object")
    require(store.read(commit_path(0)) == data, "a large object differs after reading it back")
    return f"{LARGE_BYTES >> 20} MiB created in {seconds:.1f} s"


def odd_names(context: Context) -> str:
    """Partition directories with any character in their values."""
    store = context.place.store("names")
    names = {f"{hive_directory('p', value)}/part.parquet": value for value in ODD_VALUES}
    # Other writers do not escape letters.
    names |= {f"p={value}/part.parquet": value for value in ODD_VALUES if not value.isascii()}
    for name, value in names.items():
        store.put(name, value.encode())
    listed = {info.path for info in store.walk()}
    require(listed == set(names), f"the listing has other names: {sorted(listed ^ set(names))}")
    for name, value in names.items():
        require_same(store.read(name), value.encode(), f"the content of {name!r}")
        require_same(store.head(name).path, name, "the name of an object")
    return f"{len(names)} names with blanks, percent signs, other alphabets"


def listing(context: Context) -> str:
    """A listing of several pages is complete and in order, and immediately shows all written objects."""
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
    listed = [info.path for info in store.list_directory("_delta_log")]
    require(len(set(listed)) == len(listed), "a listing shows an object twice")
    _require_listed(store, sorted(listed) == sorted(written), f"{len(listed)} of {len(written)} objects")
    require(listed == sorted(listed), "a listing is not in order")
    middle = written[len(written) // 2]
    after = store.list_directory("_delta_log", start_after=middle.removeprefix("_delta_log/"))
    _require_listed(store, [info.path for info in after] == written[len(written) // 2 + 1 :], "a tail")
    return f"{len(written)} objects, listed in full, in order, and after a given name"


def _require_listed(store: LogStore, holds: bool, what: str) -> None:
    """Check a listing. A store without consistent listings may show objects late, which readers allow for."""
    require(
        holds or not store.consistent_listing,
        f"A listing right after the writes shows {what}.",
        cause="Listings lag behind writes.",
        fix="Remove proxies and caches between this machine and the store.",
    )


def timeouts(context: Context) -> str:
    """A write without an answer is stored completely or not at all, and its writer finds out which."""
    patient = context.place.store("timeouts")
    if not patient.remote:
        return "a local write always has an answer"
    deadline, outcomes = context.deadline(), {"answered": 0, "lost": 0}
    for version, milliseconds in enumerate((3, 8, 20, 50, 120, 300)):
        data = f"written by the attempt of {milliseconds} ms\n".encode() * 2_000
        try:
            hasty = context.place.store("timeouts", timeout=f"{milliseconds}ms")
        except ConfigurationError:
            return "not run: the store has no option for a time limit, or it is set already"
        try:
            hasty.put_if_absent(commit_path(version), data)
            outcomes["answered"] += 1
        except StorageError:
            outcomes["lost"] += 1
        settle(context, patient, commit_path(version), data)
        if context.is_over(deadline):
            break
    lost, answered = outcomes["lost"], outcomes["answered"]
    return f"{lost} writes timed out and were settled by reading back, {answered} were answered"


def settle(context: Context, store: LogStore, path: str, data: bytes) -> None:
    """Do what a commit does after an unclear answer: write the same bytes again, then read twice."""
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
            stored = store.read(path)
        except ObjectNotFoundError:
            # The write that was answered with "exists" was cut off and not stored: write again.
            context.clock.sleep(0.2)
            continue
        require(stored == data, "an object has other bytes than its only writer wrote")
        context.clock.sleep(0.2)
        require(store.read(path) == data, "an object changed after it was read back")
        return
    require(False, "a name is reported as taken, but the object cannot be read")


def commit_path(version: int) -> str:
    """The path of a commit: some stores handle only such names specially."""
    return f"_delta_log/{version:020d}.json"
