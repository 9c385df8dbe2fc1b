"""The guarantees of `delta_core.storage.LogStore`, one function each, on an empty store.

A function returns when its guarantee holds and raises StoreContractError when it does not. Errors of the
store itself are not caught. `delta_core.conformance.LogStoreContract` makes a pytest suite of the functions,
`suite` a run on a URI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.conformance.expectations import require, require_raises, require_same
from delta_core.errors import ObjectExistsError, ObjectNotFoundError, PathEscapeError, StorageError
from delta_core.storage.listed_files import walk_batches
from delta_core.storage.log_store import LogStore
from delta_core.storage.name_columns import names_in
from delta_core.storage.unchanged import delete_unchanged

CLIMBING_PATHS = ("", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/\0")
"""Paths that every call must refuse."""


def a_put_object_is_read_back(store: LogStore) -> None:
    """A put object has its content, size, path and a plausible time."""
    store.put("a/b.bin", b"\0\xff one")
    require_same(store.read("a/b.bin"), b"\0\xff one", "the content")
    info = store.head("a/b.bin")
    require_same((info.path, info.size_bytes), ("a/b.bin", 6), "path and size of an object")
    require(info.modified_ms > 1_000_000_000_000, f"an object was written at {info.modified_ms} ms")


def put_replaces(store: LogStore) -> None:
    """A second put replaces the whole content."""
    store.put("x", b"long content")
    store.put("x", b"short")
    require_same(store.read("x"), b"short", "an object that was replaced")


def put_if_absent_creates_once(store: LogStore) -> None:
    """A second create-only write fails and changes nothing."""
    store.put_if_absent("_delta_log/0.json", b"first")
    again = partial(store.put_if_absent, "_delta_log/0.json", b"second")
    require_raises(ObjectExistsError, again, "creating an object a second time")
    require_same(store.read("_delta_log/0.json"), b"first", "an object that was created twice")


def missing_object(store: LogStore) -> None:
    """Every read of a missing object reports that it is missing."""
    for ask in (store.read, store.head, store.open_input, store.open_whole):
        problem = f"{ask.__name__} of a missing object"
        require_raises(ObjectNotFoundError, partial(ask, "missing/too"), problem)
        require_raises(ObjectNotFoundError, partial(ask, "missing"), problem)


def a_directory_is_not_an_object(store: LogStore) -> None:
    """A directory with objects below it is not an object itself."""
    store.put("d/x", b"1")
    for ask in (store.head, store.open_input, store.open_whole):
        require_raises(ObjectNotFoundError, partial(ask, "d"), f"{ask.__name__} of a directory")


def an_object_is_opened_whole(store: LogStore) -> None:
    """`open_whole` returns a seekable reader that has the object's size."""
    store.put("d/x", b"0123456789")
    with store.open_whole("d/x") as source:
        require_same(source.size(), 10, "the size")
        source.seek(7)
        require_same(source.read(), b"789", "the end of an object")


def delete_removes(store: LogStore) -> None:
    """Deletes an object. Deleting a missing object is not an error."""
    store.put("d/x", b"1")
    store.delete("d/x")
    store.delete("d/x")
    store.delete("no/such/thing")
    require_raises(ObjectNotFoundError, partial(store.read, "d/x"), "reading a deleted object")


def only_unchanged_objects_are_deleted(store: LogStore) -> None:
    """Objects that were written after they were listed stay. A missing object is not an error."""
    for name in ("d/same", "d/changed", "d/missing"):
        store.put(name, b"1")
    seen = [
        (path, size_bytes, modified_ms)
        for batch in walk_batches(store, "d")
        for path, size_bytes, modified_ms in zip(
            names_in(batch.paths()), batch.size_bytes.tolist(), batch.modified_ms.tolist(), strict=True
        )
    ]
    store.put("d/changed", b"other")
    store.delete("d/missing")
    done = delete_unchanged(store, seen)
    require_same((done.files, done.size_bytes), (1, 1), "the count and size of the deleted objects")
    require_same(done.changed, ("d/changed",), "the list of changed objects")
    require_same([info.path for info in store.walk()], ["d/changed"], "the remaining objects")


def listing_is_sorted_flat_and_starts_after(store: LogStore) -> None:
    """A listing contains the names directly in the directory, in order, from after `start_after` on."""
    for name in ("b", "a", "c", "sub/d", "a.b"):
        store.put(f"l/{name}", b"")
    for after, expected in (
        (None, ["l/a", "l/a.b", "l/b", "l/c"]),
        ("a", ["l/a.b", "l/b", "l/c"]),
        ("aa", ["l/b", "l/c"]),
    ):
        listed = [info.path for info in store.list_directory("l", start_after=after)]
        require_same(listed, expected, f"the listing after {after!r}")
    require_same(store.list_directory("nothing"), [], "the listing of a missing directory")


def root_listing(store: LogStore) -> None:
    """The root can be listed."""
    store.put("top", b"123")
    listed = [(info.path, info.size_bytes) for info in store.list_directory("")]
    require_same(listed, [("top", 3)], "the listing of the root")


def walk_finds_everything(store: LogStore) -> None:
    """A walk finds objects at any depth, with blanks, non-ASCII letters and percent signs in their names."""
    names = {"x", "p=1/a", "p=1/q=2/b", "_delta_log/0.json", "sp ace/ü%20.bin"}
    for name in names:
        store.put(name, b"1")
    require_same({info.path for info in store.walk()}, names, "a walk from the root")
    listed = [path for batch in walk_batches(store) for path in names_in(batch.paths())]
    require_same(sorted(listed), sorted(names), "a walk in columns")
    require_same({info.path for info in store.walk("p=1")}, {"p=1/a", "p=1/q=2/b"}, "a walk of a directory")
    require_same(list(store.walk("absent")), [], "a walk of a missing directory")


def output_appears_when_the_context_ends(store: LogStore) -> None:
    """The object does not appear before the context ends."""
    with store.open_output("data/part.bin") as sink:
        sink.write(b"abc")
        require_same(store.list_directory("data"), [], "the listing while an object is written")
    require_same(store.read("data/part.bin"), b"abc", "the written content")


def failed_output_leaves_nothing(store: LogStore) -> None:
    """A failed writer leaves neither the object nor a part of it."""
    failure = StorageError("the writer failed")
    try:
        with store.open_output("data/part.bin") as sink:
            sink.write(b"abc")
            raise failure
    except StorageError as error:
        require(error is failure, f"a writer's own error was raised as {error!r}")
    require_same([info.path for info in store.walk()], [], "the objects after a failed write")


def parquet_through_input_and_output(store: LogStore) -> None:
    """Arrow reads the Parquet file that it wrote."""
    table = pa.table({"x": list(range(1000))})
    with store.open_output("t.parquet") as sink:
        pq.write_table(table, sink)
    with store.open_input("t.parquet") as source:
        require(bool(pq.read_table(source).equals(table)), "a Parquet file differs after reading it back")


def paths_stay_below_the_root(store: LogStore) -> None:
    """No call accepts a path that leaves the root."""
    for path in CLIMBING_PATHS:
        calls: list[Callable[[], object]] = [
            *(partial(ask, path) for ask in (store.read, store.head, store.delete, store.open_input)),
            partial(store.put_if_absent, path, b""),
            partial(store.put, path, b""),
        ]
        for call in calls:
            require_raises(PathEscapeError, call, f"a call for {path!r}")


def persist_accepts_existing_and_refuses_missing_objects(store: LogStore) -> None:
    """`persist` accepts existing objects and raises an error for a missing object."""
    store.put("a/b/x", b"1")
    store.put("y", b"2")
    store.persist(["a/b/x", "y"])
    require_same(store.read("a/b/x"), b"1", "the durable content")
    require_raises(ObjectNotFoundError, partial(store.persist, ["a/b/missing"]), "persisting a missing file")


def uri_has_no_trailing_slash(store: LogStore) -> None:
    """The URI is canonical."""
    require("://" in store.uri and not store.uri.endswith("/"), f"the URI {store.uri!r} is not canonical")


CONTRACT: Mapping[str, Callable[[LogStore], None]] = {
    check.__name__: check
    for check in (
        a_put_object_is_read_back,
        put_replaces,
        put_if_absent_creates_once,
        missing_object,
        a_directory_is_not_an_object,
        an_object_is_opened_whole,
        delete_removes,
        only_unchanged_objects_are_deleted,
        listing_is_sorted_flat_and_starts_after,
        root_listing,
        walk_finds_everything,
        output_appears_when_the_context_ends,
        failed_output_leaves_nothing,
        parquet_through_input_and_output,
        paths_stay_below_the_root,
        persist_accepts_existing_and_refuses_missing_objects,
        uri_has_no_trailing_slash,
    )
}
"""The guarantees that a single process can check, by name."""
