"""What every `LogStore` must do. Subclass it, give it a `store` fixture, and name the class `Test...`."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from delta_core.errors import ObjectExistsError, ObjectNotFoundError, PathEscapeError
from delta_core.storage.log_store import LogStore

RACING_THREADS = 20
RACE_ROUNDS = 20


class LogStoreContract:
    """The guarantees of `delta_core.storage.log_store.LogStore`."""

    @pytest.fixture
    def store(self) -> LogStore:
        """An empty store; subclasses override it."""
        pytest.fail("a subclass gives the store")

    def test_what_was_put_is_read(self, store: LogStore) -> None:
        store.put("a/b.bin", b"\0\xff one")
        assert store.read("a/b.bin") == b"\0\xff one"
        assert store.head("a/b.bin").size_bytes == 6
        assert store.head("a/b.bin").path == "a/b.bin"
        assert store.head("a/b.bin").modified_ms > 1_000_000_000_000

    def test_put_replaces(self, store: LogStore) -> None:
        store.put("x", b"long content")
        store.put("x", b"short")
        assert store.read("x") == b"short"

    def test_put_if_absent_creates_once(self, store: LogStore) -> None:
        store.put_if_absent("_delta_log/0.json", b"first")
        with pytest.raises(ObjectExistsError):
            store.put_if_absent("_delta_log/0.json", b"second")
        assert store.read("_delta_log/0.json") == b"first"

    def test_exactly_one_of_racing_creators_wins(self, store: LogStore) -> None:
        for number in range(RACE_ROUNDS):
            path = f"_delta_log/{number}.json"
            winners = _race(lambda index, path=path: store.put_if_absent(path, b"%d" % index * 4096))
            assert len(winners) == 1
            assert store.read(path) == b"%d" % winners[0] * 4096

    def test_missing_object(self, store: LogStore) -> None:
        with pytest.raises(ObjectNotFoundError):
            store.read("missing")
        with pytest.raises(ObjectNotFoundError):
            store.head("missing")
        with pytest.raises(ObjectNotFoundError):
            store.open_input("missing/too")

    def test_delete(self, store: LogStore) -> None:
        store.put("d/x", b"1")
        store.delete("d/x")
        store.delete("d/x")
        store.delete("no/such/thing")
        with pytest.raises(ObjectNotFoundError):
            store.read("d/x")

    def test_listing_is_sorted_flat_and_starts_after(self, store: LogStore) -> None:
        for name in ("b", "a", "c", "sub/d", "a.b"):
            store.put(f"l/{name}", b"")
        assert [info.path for info in store.list_directory("l")] == ["l/a", "l/a.b", "l/b", "l/c"]
        assert [info.path for info in store.list_directory("l", start_after="a")] == ["l/a.b", "l/b", "l/c"]
        assert [info.path for info in store.list_directory("l", start_after="aa")] == ["l/b", "l/c"]
        assert store.list_directory("nothing") == []

    def test_root_listing(self, store: LogStore) -> None:
        store.put("top", b"123")
        assert [(info.path, info.size_bytes) for info in store.list_directory("")] == [("top", 3)]

    def test_walk_finds_everything(self, store: LogStore) -> None:
        names = {"x", "p=1/a", "p=1/q=2/b", "_delta_log/0.json", "sp ace/ü%20.bin"}
        for name in names:
            store.put(name, b"1")
        assert {info.path for info in store.walk()} == names
        assert {info.path for info in store.walk("p=1")} == {"p=1/a", "p=1/q=2/b"}
        assert list(store.walk("absent")) == []

    def test_output_appears_when_the_context_ends(self, store: LogStore) -> None:
        with store.open_output("data/part.bin") as sink:
            sink.write(b"abc")
            assert store.list_directory("data") == []
        assert store.read("data/part.bin") == b"abc"

    def test_failed_output_leaves_nothing(self, store: LogStore) -> None:
        def fail_while_writing() -> None:
            with store.open_output("data/part.bin") as sink:
                sink.write(b"abc")
                raise RuntimeError("boom")

        with pytest.raises(RuntimeError, match="boom"):
            fail_while_writing()
        assert list(store.walk()) == []

    def test_parquet_through_input_and_output(self, store: LogStore) -> None:
        import pyarrow as pa

        table = pa.table({"x": list(range(1000))})
        with store.open_output("t.parquet") as sink:
            pq.write_table(table, sink)
        with store.open_input("t.parquet") as source:
            assert pq.read_table(source).equals(table)

    @pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/\0"])
    def test_paths_stay_below_the_root(self, store: LogStore, path: str) -> None:
        for call in (store.read, store.head, store.delete, store.open_input):
            with pytest.raises(PathEscapeError):
                call(path)
        with pytest.raises(PathEscapeError):
            store.put_if_absent(path, b"")
        with pytest.raises(PathEscapeError):
            store.put(path, b"")

    def test_persist_takes_what_is_there_and_names_what_is_not(self, store: LogStore) -> None:
        store.put("a/b/x", b"1")
        store.put("y", b"2")
        store.persist(["a/b/x", "y"])
        assert store.read("a/b/x") == b"1"
        with pytest.raises(ObjectNotFoundError):
            store.persist(["a/b/gone"])

    def test_uri_has_no_trailing_slash(self, store: LogStore) -> None:
        assert "://" in store.uri
        assert not store.uri.endswith("/")


def _race(attempt: Callable[[int], None]) -> list[int]:
    """Run an attempt in many threads that start together; who did not get ObjectExistsError."""
    barrier = threading.Barrier(RACING_THREADS)
    winners: list[int] = []
    unexpected: list[BaseException] = []

    def run(index: int) -> None:
        barrier.wait()
        try:
            attempt(index)
        except ObjectExistsError:
            return
        except BaseException as error:
            unexpected.append(error)
            return
        winners.append(index)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(RACING_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert unexpected == []
    return winners
