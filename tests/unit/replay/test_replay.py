"""Columnar replay against a model of dictionaries."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions import Action, AddFile, DeletionVectorDescriptor, DomainMetadata, SetTransaction
from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA, STRING_MAP, TOMBSTONE_SCHEMA
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import ConfigurationError
from delta_core.replay.checkpoint_chunk import deletion_vectors
from delta_core.replay.live_files import LiveFiles
from delta_core.replay.map_strings import map_values, plain_map
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove

DELETION_VECTORS = frozenset({"deletionVectors"})


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t")


def _paths(snapshot: Snapshot) -> list[str]:
    return snapshot.files.to_table(["path"]).column("path").to_pylist()


def _load(log: LogBuilder, version: int | None = None) -> Snapshot:
    return Snapshot.load(log.store, version=version, clock=log.clock)


def _deletion_vector(number: int) -> DeletionVectorDescriptor | None:
    if number == 0:
        return None
    return DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv=f"dv{number}", offset=1, size_in_bytes=1, cardinality=number
    )


def test_random_histories_equal_a_model(log: LogBuilder, rng: random.Random) -> None:
    for round_number in range(25):
        log = LogBuilder(log.root.with_name(f"t{round_number}"))
        features = {"reader_features": DELETION_VECTORS, "writer_features": DELETION_VECTORS}
        log.commit(protocol(min_reader_version=3, min_writer_version=7, **features), metadata())
        live: dict[tuple[str, int], AddFile] = {}
        gone: set[tuple[str, int]] = set()
        snapshot = _load(log)
        for _ in range(12):
            used: set[tuple[str, int]] = set()
            actions: list[Action] = []
            for _ in range(rng.randrange(6)):
                name = rng.choice(["a", "b b", "c%", "ü", "d", "e", "f"])
                key = (name, rng.randrange(3))
                if key in used:
                    continue
                used.add(key)
                encoded = name.replace("%", "%25").replace(" ", "%20")
                if key in live and rng.random() < 0.6:
                    actions.append(remove(encoded, deletion_vector=_deletion_vector(key[1])))
                    del live[key]
                    gone.add(key)
                else:
                    file = add(
                        encoded, deletion_vector=_deletion_vector(key[1]), size_bytes=rng.randrange(99)
                    )
                    actions.append(file)
                    live[key] = file
                    gone.discard(key)
            log.commit(*actions)
            if rng.random() < 0.5:
                snapshot = snapshot.refresh()
            if rng.random() < 0.3:
                _ = snapshot.files
        expected = sorted((file.path, file.size_bytes, key[1]) for key, file in live.items())
        removed = sorted((name.replace("%", "%25").replace(" ", "%20"), number) for name, number in gone)
        for state in (snapshot.refresh(), _load(log)):
            rows = state.files.to_table().to_pylist()
            dvs = [(row["deletion_vector"] or {"cardinality": 0})["cardinality"] for row in rows]
            found = zip((row["path"] for row in rows), (row["size_bytes"] for row in rows), dvs, strict=True)
            assert sorted(found) == expected
            assert state.files.total_bytes == sum(size for _, size, _ in expected)
            tombstones = state.tombstones().to_pylist()
            assert (
                sorted(
                    (row["path"], (row["deletion_vector"] or {"cardinality": 0})["cardinality"])
                    for row in tombstones
                )
                == removed
            )


def test_every_history_equals_itself_through_a_checkpoint(log: LogBuilder, rng: random.Random) -> None:
    log.create()
    live: set[str] = set()
    for _ in range(30):
        name = f"p=1/{rng.randrange(12)}"
        log.commit(remove(name) if name in live else add(name, size_bytes=rng.randrange(1000)))
        live ^= {name}
    for version in range(0, 31, 5):
        whole = _load(log, version)
        expected = (whole.files.to_table().sort_by("path"), whole.tombstones().sort_by("path"))
        write_checkpoint(whole)
        for later in (version, 30):
            again = _load(log, later)
            assert again.segment.checkpoint_version == version
            if later == version:
                assert (
                    again.files.to_table().sort_by("path"),
                    again.tombstones().sort_by("path"),
                ) == expected
            else:
                assert set(_paths(again)) == live
        (log.log / f"{version:020d}.checkpoint.parquet").unlink()


def test_a_deletion_vector_tells_files_of_a_checkpoint_apart(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a checkpoint as in a commit: by where it is kept, and by its place there."""
    features = {"reader_features": DELETION_VECTORS, "writer_features": DELETION_VECTORS}
    log.commit(protocol(min_reader_version=3, min_writer_version=7, **features), metadata())
    dvs = [
        None,
        _deletion_vector(1),
        _deletion_vector(2),
        replace(_deletion_vector(1), offset=7),
        replace(_deletion_vector(1), offset=None),
    ]
    log.commit(*(add("x", deletion_vector=vector, size_bytes=size) for size, vector in enumerate(dvs)))
    monkeypatch.setattr(Snapshot, "require_writable", lambda self, **_: None)
    write_checkpoint(_load(log))
    for size, vector in enumerate(dvs):
        log.commit(remove("x", deletion_vector=vector))
        sizes = _load(log).files.to_table(["size_bytes"]).column("size_bytes").to_pylist()
        assert sizes == list(range(size + 1, len(dvs)))
        tombstones = _load(log).tombstones(since_ms=0).column("deletion_vector").to_pylist()
        assert len(tombstones) == size + 1


def test_tombstones_of_escaped_paths_are_told_apart_by_their_deletion_vectors(log: LogBuilder) -> None:
    features = {"reader_features": DELETION_VECTORS, "writer_features": DELETION_VECTORS}
    log.commit(protocol(min_reader_version=3, min_writer_version=7, **features), metadata())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Snapshot, "require_writable", lambda self, **_: None)
        log.commit(*(remove("%61%20b", deletion_vector=_deletion_vector(number)) for number in range(3)))
        write_checkpoint(_load(log))
    for number, left in ((2, {0, 1}), (0, {1})):
        log.commit(add("a b", deletion_vector=_deletion_vector(number)))
        dvs = _load(log).tombstones(since_ms=0).column("deletion_vector").to_pylist()
        assert {vector["cardinality"] if vector else 0 for vector in dvs} == left


def test_other_spellings_of_a_path_remove_it(log: LogBuilder) -> None:
    log.create(add("a%20b"), add("t=12%3A30/x"), add("file:///else/y%20z"), add("keep"))
    write_checkpoint(_load(log))
    log.commit(remove("a b"), remove("t=12:30/x"), remove("file:/else/y z"))
    assert _paths(_load(log)) == ["keep"]
    log.remove_commits([0])
    assert _paths(_load(log)) == ["keep"]


def test_unusual_spelling_in_a_checkpoint(log: LogBuilder) -> None:
    log.create(add("%61%2Fb"), add("keep%20it"))
    write_checkpoint(_load(log))
    log.commit(remove("a/b"))
    assert _paths(_load(log)) == ["keep%20it"]


def test_transactions_and_domains(log: LogBuilder) -> None:
    log.create()
    log.commit(SetTransaction(app_id="a", version=1), DomainMetadata(domain="d", configuration="1"))
    log.commit(
        SetTransaction(app_id="b", version=5, last_updated_ms=3), DomainMetadata(domain="e", configuration="")
    )
    first = _load(log)
    write_checkpoint(first)
    log.commit(
        SetTransaction(app_id="a", version=2), DomainMetadata(domain="d", configuration="", removed=True)
    )
    for snapshot in (first.refresh(), _load(log)):
        assert {key: value.version for key, value in snapshot.transactions.items()} == {"a": 2, "b": 5}
        assert snapshot.transactions["b"].last_updated_ms == 3
        assert set(snapshot.domain_metadata) == {"e"}


def test_the_last_word_on_an_application_and_on_a_domain_stands(log: LogBuilder) -> None:
    log.create()
    for number in range(3):
        log.commit(
            SetTransaction(app_id="a", version=number),
            DomainMetadata(domain="d", configuration=f"{number}"),
            DomainMetadata(domain="removed", configuration="", removed=number == 1),
        )
    log.commit(DomainMetadata(domain="removed", configuration="", removed=True))
    snapshot = _load(log)
    assert snapshot.transactions["a"].version == 2
    assert {name: item.configuration for name, item in snapshot.domain_metadata.items()} == {"d": "2"}


def test_columns_are_decoded_when_asked(log: LogBuilder) -> None:
    log.create(*(add(f"f{number}") for number in range(5)))
    write_checkpoint(_load(log))
    snapshot = _load(log)
    assert snapshot.files.num_files == 5
    (slot,) = snapshot.files._slots
    decoded = set(slot.chunk._columns)  # type: ignore[attr-defined]
    # Partition values are kept in their compact form.
    assert decoded == {"path", "size_bytes"}
    assert slot.chunk.partition("p").to_array().to_pylist() == ["1"] * 5
    assert snapshot.files.to_table(["stats"]).column("stats").to_pylist() == ['{"numRecords":1}'] * 5
    assert set(slot.chunk._columns) == decoded | {"stats"}  # type: ignore[attr-defined]


def test_refresh_shares_chunks(log: LogBuilder) -> None:
    log.create(*(add(f"f{number}") for number in range(5)))
    before = _load(log)
    kept = before.files._slots[0].chunk
    write_checkpoint(before)
    opened = _load(log)
    chunk = opened.files._slots[0].chunk
    log.commit(remove("f1"), add("g"))
    after = opened.refresh()
    assert after.files._slots[0].chunk is chunk
    assert _paths(after) == ["f0", "f2", "f3", "f4", "g"]
    assert _paths(opened) == [f"f{number}" for number in range(5)]
    assert kept.num_rows == 5


def test_many_refreshes_make_few_chunks(log: LogBuilder) -> None:
    log.create(add("first"))
    snapshot = _load(log)
    assert snapshot.files.num_files == 1
    for _ in range(30):
        log.appends(1)
        snapshot = snapshot.refresh()
    assert snapshot.files.num_files == 31
    assert len(snapshot.files._slots) == 1


def test_select(log: LogBuilder) -> None:
    log.create(*(add(f"f{number}") for number in range(6)))
    write_checkpoint(_load(log))
    log.commit(remove("f2"), add("g"), add("h"))
    files = _load(log).files
    names = ["f0", "f1", "f3", "f4", "f5", "g", "h"]
    mask = [name in ("f1", "f4", "h") for name in names]
    for rows in (pa.array(mask), np.array(mask), pa.array([1, 3, 6]), np.array([1, 3, 6])):
        chosen = files.select(rows)
        assert chosen.to_table(["path"]).column(0).to_pylist() == ["f1", "f4", "h"]
        assert (chosen.num_files, chosen.total_bytes) == (3, 30)
    assert files.select(pa.array([None] * 7, pa.bool_())).num_files == 0
    twice = files.select(np.array(mask)).select(np.array([False, True, True]))
    assert twice.to_table(["path"]).column(0).to_pylist() == ["f4", "h"]
    with pytest.raises(ConfigurationError, match="mask has 2"):
        files.select(np.array([True, False]))


def test_empty() -> None:
    files = LiveFiles()
    assert (files.num_files, files.total_bytes, files.has_deletion_vectors) == (0, 0, False)
    assert files.to_table().schema == LIVE_FILE_SCHEMA
    assert files.partition_column("p").to_pylist() == []


def test_partitions_of_files_that_differ_in_their_keys(log: LogBuilder) -> None:
    """Then there is no compact form, in a checkpoint as in commits."""
    log.create(add("a"), add("b", partition_values={"q": "2"}), add("c", partition_values={}))
    for _ in range(2):
        files = _load(log).files
        found = {
            name: [value for chunk in files.chunks for value in chunk.partition(name).to_array().to_pylist()]
            for name in ("p", "q", "r")
        }
        assert found == {"p": ["1", None, None], "q": [None, "2", None], "r": [None, None, None]}
        assert [chunk.partition("p") is chunk.partition("p") for chunk in files.chunks] == [True]
        write_checkpoint(_load(log))


def test_partition_column(log: LogBuilder) -> None:
    values = [{"p": "1", "q": None}, {"p": None, "q": "x"}, {"p": "2", "q": "y"}]
    log.create(*(add(f"f{n}", partition_values=value) for n, value in enumerate(values)))
    write_checkpoint(_load(log))
    log.commit(remove("f0"), add("g", partition_values={"q": "z", "p": "3"}), add("h", partition_values={}))
    files = _load(log).files
    assert files.partition_column("p").to_pylist() == [None, "2", "3", None]
    assert files.partition_column("q").to_pylist() == ["x", "y", "z", None]
    assert files.partition_column("absent").to_pylist() == [None] * 4
    maps = files.to_table(["partition_values"]).column(0).to_pylist()
    assert [dict(row) for row in maps] == [
        {"p": None, "q": "x"},
        {"p": "2", "q": "y"},
        {"q": "z", "p": "3"},
        {},
    ]


def test_map_helpers_on_slices() -> None:
    dictionary = pa.map_(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int32(), pa.string()))
    rows = [[("a", str(n)), ("b", None)] for n in range(6)]
    plain = pa.array(rows, STRING_MAP)
    encoded = pa.MapArray.from_arrays(
        plain.offsets, plain.keys.dictionary_encode(), plain.items.dictionary_encode()
    )
    assert encoded.type == dictionary
    for array in (plain, encoded):
        cut = array.slice(2, 3)
        assert map_values(cut, "a").to_pylist() == ["2", "3", "4"]
        assert map_values(cut, "b").to_pylist() == [None] * 3
        assert plain_map(cut).to_pylist() == rows[2:5]
    ragged = pa.array([[("a", "1")], None, [], [("b", "2"), ("a", "3")]], STRING_MAP)
    assert map_values(ragged, "a").to_pylist() == ["1", None, None, "3"]
    assert plain_map(ragged.slice(1, 3)).to_pylist() == [None, [], [("b", "2"), ("a", "3")]]
    keys, items = (side.dictionary_encode() for side in (ragged.keys, ragged.items))
    encoded_ragged = pa.MapArray.from_arrays(pa.array([0, 0, None, 0, 1, 3], pa.int32()), keys, items)
    assert plain_map(encoded_ragged.slice(1, 3)).to_pylist() == [[], None, [("a", "1")]]


def test_files_between_other_rows_of_a_row_group(log: LogBuilder) -> None:
    log.create(*(add(f"f{number}", partition_values={"p": str(number)}) for number in range(8)))
    log.commit(remove("f2"), remove("f5"))
    write_checkpoint(_load(log))
    path = log.log / f"{1:020d}.checkpoint.parquet"
    rows = pq.read_table(path)
    log.remove_commits([0])
    orders = {"run": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "mixed": [2, 0, 8, 3, 4, 1, 9, 5, 6, 7]}
    for order in orders.values():
        pq.write_table(rows.take(order), path)
        files = _load(log).files
        assert files.to_table(["path", "partition_values"]).to_pylist() == [
            {"path": f"f{number}", "partition_values": [("p", str(number))]} for number in (0, 1, 3, 4, 6, 7)
        ]
        assert files.partition_column("p").to_pylist() == ["0", "1", "3", "4", "6", "7"]
        assert files.to_table(["deletion_vector", "tags"]).num_rows == 6


def test_tombstones_keep_their_schema_and_expire(log: LogBuilder) -> None:
    log.create(add("a"), add("b"), configuration={"delta.deletedFileRetentionDuration": "interval 1 hour"})
    now = log.clock.now_ms()
    log.commit(remove("a", deletion_timestamp_ms=now - 3_600_001), remove("b", deletion_timestamp_ms=now))
    log.commit(remove("never-there", deletion_timestamp_ms=None))
    snapshot = _load(log)
    assert snapshot.tombstones().schema == TOMBSTONE_SCHEMA
    assert snapshot.tombstones().column("path").to_pylist() == ["b"]
    assert snapshot.tombstones(since_ms=0).num_rows == 3
    write_checkpoint(snapshot)
    assert _load(log).tombstones(since_ms=0).column("path").to_pylist() == ["b"]


@pytest.mark.parametrize("lacking", ["storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"])
def test_a_deletion_vector_without_a_field_is_refused(lacking: str) -> None:
    whole = {"storageType": "u", "pathOrInlineDv": "x", "offset": None, "sizeInBytes": 1, "cardinality": 1}
    kinds = [("storageType", pa.string()), ("pathOrInlineDv", pa.string()), ("offset", pa.int32())]
    data_type = pa.struct([*kinds, ("sizeInBytes", pa.int32()), ("cardinality", pa.int64())])
    assert deletion_vectors(pa.array([whole, None], data_type)).null_count == 1
    with pytest.raises(TypeError, match=f"the field {lacking} of a deletion vector|or the only one"):
        deletion_vectors(pa.array([whole, {**whole, lacking: None}, None], data_type))


def test_a_deletion_vector_without_the_column_of_offsets() -> None:
    """Inline ones have none, and some writers then leave the column out."""
    inline = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    kinds = [("storageType", pa.string()), ("pathOrInlineDv", pa.string())]
    data_type = pa.struct([*kinds, ("sizeInBytes", pa.int32()), ("cardinality", pa.int64())])
    (found, absent) = deletion_vectors(pa.array([inline, None], data_type)).to_pylist()
    assert found == {
        "storage_type": "i",
        "path_or_inline_dv": "x",
        "offset": None,
        "size_in_bytes": 1,
        "cardinality": 1,
    }
    assert absent is None


def test_tombstones_without_columns_that_are_optional(log: LogBuilder) -> None:
    log.create(add("a"), add("b"))
    log.commit(remove("a"))
    whole = _load(log)
    write_checkpoint(whole)
    path = log.log / f"{1:020d}.checkpoint.parquet"
    table = pq.read_table(path)
    index = table.schema.get_field_index("remove")
    removes = table.column(index).combine_chunks()
    kept = ["path", "deletionTimestamp", "dataChange"]
    lean = pa.StructArray.from_arrays(
        [removes.field(name) for name in kept], kept, mask=pa.compute.is_null(removes)
    )
    pq.write_table(table.set_column(index, "remove", lean), path, store_schema=False)
    log.remove_commits([0])
    (row,) = _load(log).tombstones(since_ms=0).to_pylist()
    (expected,) = whole.tombstones(since_ms=0).to_pylist()
    optional = {"partition_values": None, "size_bytes": None, "deletion_vector": None}
    assert row == expected | optional | {"extended_file_metadata": None}
    assert _load(log).tombstones(since_ms=0).schema == TOMBSTONE_SCHEMA


@pytest.mark.parametrize(
    "path",
    [
        "city=São%20Paulo/f.parquet",
        "c=Côte%20d%2527Ivoire/part-0.parquet",
        "c=日本%5Bx%5D/f",
        "c=%25/é",
        "c=%c3%a9/part-00000-abcdef.parquet",
        "p=1/a b",
        "p=1/plain.parquet",
    ],
)
def test_a_file_that_comes_back_counts_once_however_it_is_spelled(log: LogBuilder, path: str) -> None:
    log.create(add(path), add("other%20one"))
    write_checkpoint(_load(log))
    log.commit(remove(path))
    assert _load(log).files.num_files == 1
    log.commit(add(path, size_bytes=77))
    restored = _load(log)
    assert sorted(restored.files.to_table(["size_bytes"])["size_bytes"].to_pylist()) == [10, 77]
    # Added anew without a remove, as when statistics are computed; and spelled otherwise.
    log.commit(add(quote(unquote(path), safe="/="), size_bytes=78))
    assert sorted(_load(log).files.to_table(["size_bytes"])["size_bytes"].to_pylist()) == [10, 78]
    write_checkpoint(_load(log))
    again = _load(log)
    assert again.files.num_files == 2
    assert again.tombstones(since_ms=0).num_rows == 0


def test_a_tombstone_of_a_file_that_came_back_is_none(log: LogBuilder) -> None:
    path = "city=São%20Paulo/f.parquet"
    log.create(add(path))
    log.commit(remove(path))
    write_checkpoint(_load(log))
    log.commit(add(path))
    assert _load(log).tombstones(since_ms=0).num_rows == 0


def test_many_files_that_are_removed_under_another_spelling(log: LogBuilder) -> None:
    """Found by the ends of their names, since nobody has to escape the letters that are escaped here."""
    names = [f"%63ity/part-{number:05}-abcdef.parquet" for number in range(30)]
    log.create(*(add(name) for name in names), add("keep"))
    write_checkpoint(_load(log))
    log.commit(*(remove(unquote(name)) for name in names))
    assert _paths(_load(log)) == ["keep"]


def test_many_files_that_come_back_under_another_spelling(log: LogBuilder) -> None:
    names = [f"city=São%20Paulo/part-{number:05}.parquet" for number in range(30)]
    log.create(*(add(name) for name in names))
    write_checkpoint(_load(log))
    log.commit(*(add(quote(unquote(name), safe="").replace("%2F", "/"), size_bytes=7) for name in names))
    sizes = _load(log).files.to_table(["size_bytes"])["size_bytes"].to_pylist()
    assert sizes == [7] * 30
