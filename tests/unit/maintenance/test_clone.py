from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

from delta_core import CommitProperties, DeltaTable, clone_table, write_deltalake
from delta_core.actions import AddFile, DomainMetadata, Protocol
from delta_core.errors import (
    CloneError,
    ConcurrentModificationError,
    MissingDataFileError,
    PathEscapeError,
    UnsupportedTableFeatureError,
)
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.clone import apply_clone, plan_clone
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.file_actions import add_actions
from tests.support.deletion_vector_tables import every_kind_of_deletion_vector
from tests.support.log_builder import LogBuilder, metadata, protocol

MakeTable = Callable[..., Path]


def by_duckdb(path: Path, columns: str) -> list[tuple[Any, ...]]:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        return sorted(connection.execute(f"SELECT {columns} FROM delta_scan(?)", [str(path)]).fetchall())


def by_deltalake(path: Path, columns: str) -> list[tuple[Any, ...]]:
    found = QueryBuilder().register("t", PeerTable(str(path))).execute(f"SELECT {columns} FROM t")
    return sorted(tuple(row.values()) for row in pa.table(found.read_all()).to_pylist())


def ids(path: Path, roots: Sequence[Path] = ()) -> list[int]:
    return sorted(DeltaTable(path, allowed_roots=roots).to_pyarrow_table(["id"])["id"].to_pylist())


def live(path: Path) -> list[AddFile]:
    return list(add_actions(Snapshot.load(LocalLogStore(path)).files.to_table(), data_change=True))


def objects(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def data_objects(path: Path) -> set[str]:
    return {name for name in objects(path) if not name.startswith("_delta_log")} if path.exists() else set()


def commit_text(path: Path, version: int) -> list[dict[str, Any]]:
    text = (path / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_deep_clone_stands_alone(make_table: MakeTable, helpers: Any, tmp_path: Path) -> None:
    source = make_table(commits=3, partitioned=True)
    before = objects(source)
    result = clone_table(source, tmp_path / "c")
    assert objects(source) == before
    assert (result.version, result.source_version) == (0, 2)
    assert result.files_copied == result.files_added == len(live(source))
    assert result.bytes_copied == sum(add.size_bytes for add in live(source))
    expected = helpers.content(source)
    source.rename(tmp_path / "elsewhere")
    assert helpers.content(tmp_path / "c") == expected
    assert by_duckdb(tmp_path / "c", "id") == [(number,) for number in range(30)]
    assert ids(tmp_path / "c") == list(range(30))


def test_a_clone_has_an_id_and_a_history_of_its_own(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path / "t",
        pa.schema([("id", pa.int64()), pa.field("p", pa.string())]),
        partition_by=["p"],
        configuration={"delta.appendOnly": "true", "mine": "1"},
        name="n",
        description="d",
    )
    table.alter.add_constraint({"positive": "id > 0"})
    write_deltalake(tmp_path / "t", pa.table({"id": [1], "p": ["x"]}), mode="append", txn=("job", 1))
    clone_table(tmp_path / "t", tmp_path / "c", commit_properties=CommitProperties(user_metadata="why"))
    source, clone = DeltaTable(tmp_path / "t"), DeltaTable(tmp_path / "c")
    ours, theirs = clone.metadata(), source.metadata()
    assert ours.id != theirs.id
    assert (ours.name, ours.description, ours.partition_columns) == ("n", "d", ("p",))
    assert ours.schema_string == theirs.schema_string
    assert dict(ours.configuration) == {**theirs.configuration, "deltaward.cloneOf": theirs.id}
    assert clone.protocol() == source.protocol()
    assert clone.transactions() == {}
    (entry,) = clone.history()
    assert entry.commit_info.operation == "CLONE"
    assert entry.commit_info.user_metadata == "why"
    assert entry.commit_info.operation_parameters["sourceVersion"] == "2"
    assert entry.commit_info.operation_metrics["numCopiedFiles"] == "1"
    with pytest.raises(Exception, match="positive"):
        write_deltalake(tmp_path / "c", pa.table({"id": [0], "p": ["x"]}), mode="append")


def test_another_clone_copies_only_what_is_new(make_table: MakeTable, helpers: Any, tmp_path: Path) -> None:
    source = make_table(commits=3)
    clone_table(source, tmp_path / "c")
    assert clone_table(source, tmp_path / "c").committed is None
    PeerTable(str(source)).delete("id >= 10 AND id < 20")
    write_deltalake(source, helpers.rows(90, 5), mode="append")
    DeltaTable(source).alter.set_properties({"mine": "2"})
    first = {add.path for add in live(tmp_path / "c")}
    result = clone_table(source, tmp_path / "c")
    assert (result.version, result.files_copied, result.files_added, result.files_removed) == (1, 1, 1, 1)
    assert helpers.content(tmp_path / "c") == helpers.content(source)
    assert len(first & {add.path for add in live(tmp_path / "c")}) == 2
    assert PeerTable(str(tmp_path / "c")).metadata().configuration["mine"] == "2"
    assert helpers.content(tmp_path / "c", version=0) == helpers.content(source, version=2)


def test_what_was_written_to_the_clone_goes_and_stays_in_its_history(
    make_table: MakeTable, helpers: Any, tmp_path: Path
) -> None:
    source = make_table(commits=2)
    clone_table(source, tmp_path / "c")
    write_deltalake(tmp_path / "c", helpers.rows(500, 1), mode="append")
    PeerTable(str(tmp_path / "c")).delete("id = 3")
    changed = helpers.content(tmp_path / "c")
    clone_table(source, tmp_path / "c")
    assert helpers.content(tmp_path / "c") == helpers.content(source)
    assert helpers.content(tmp_path / "c", version=2) == changed


def test_an_earlier_version_or_time(make_table: MakeTable, helpers: Any, tmp_path: Path) -> None:
    source = make_table(commits=4)
    clone_table(source, tmp_path / "by_version", version=1)
    when = DeltaTable(source, version=2).snapshot.timestamp_ms
    clone_table(source, tmp_path / "by_time", timestamp_ms=when)
    assert helpers.content(tmp_path / "by_version") == helpers.content(source, version=1)
    assert helpers.content(tmp_path / "by_time") == helpers.content(source, version=2)


def test_a_shallow_clone_names_the_sources_files(make_table: MakeTable, tmp_path: Path) -> None:
    source = make_table(commits=2, partitioned=True, name="t ü")
    result = clone_table(source, tmp_path / "c", shallow=True)
    assert (result.files_copied, data_objects(tmp_path / "c")) == (0, set())
    root = f"file:{source}".replace("t ü", "t%20ü")
    assert all(add.path.startswith(root + "/part=") for add in live(tmp_path / "c"))
    assert "%20" in root
    with pytest.raises(PathEscapeError):
        ids(tmp_path / "c")
    assert ids(tmp_path / "c", [source]) == list(range(20))
    assert by_deltalake(tmp_path / "c", "id") == [(number,) for number in range(20)]
    assert clone_table(source, tmp_path / "c", shallow=True).committed is None


def test_a_shallow_clone_loses_what_the_sources_vacuum_deletes(
    make_table: MakeTable, helpers: Any, tmp_path: Path
) -> None:
    source = make_table(commits=2)
    clone_table(source, tmp_path / "c", shallow=True)
    PeerTable(str(source)).delete("id < 10")
    helpers.age_files(source, 30)
    DeltaTable(source).vacuum(0, dry_run=False, enforce_retention=False, force=True)
    with pytest.raises(MissingDataFileError):
        ids(tmp_path / "c", [source])
    clone_table(source, tmp_path / "c", shallow=True)
    assert ids(tmp_path / "c", [source]) == list(range(10, 20))


def test_the_vacuum_of_a_shallow_clone_spares_the_source(
    make_table: MakeTable, helpers: Any, tmp_path: Path
) -> None:
    source = make_table(commits=2)
    clone_table(source, tmp_path / "c", shallow=True)
    before = objects(source)
    write_deltalake(tmp_path / "c", helpers.rows(70, 1), mode="overwrite")
    DeltaTable(tmp_path / "c").vacuum(0, dry_run=False, enforce_retention=False, force=True)
    assert objects(source) == before
    assert ids(tmp_path / "c") == [70]


@pytest.mark.parametrize("shallow", [True, False])
def test_a_clone_of_a_shallow_clone(make_table: MakeTable, tmp_path: Path, shallow: bool) -> None:
    source = make_table(commits=2)
    clone_table(source, tmp_path / "b", shallow=True)
    write_deltalake(tmp_path / "b", pa.table({"id": pa.array([99], pa.int64())}), mode="append")
    with pytest.raises(PathEscapeError):
        clone_table(tmp_path / "b", tmp_path / "c", shallow=shallow)
    assert not (tmp_path / "c").exists() or data_objects(tmp_path / "c") == set()
    clone_table(tmp_path / "b", tmp_path / "c", shallow=shallow, allowed_roots=[source])
    roots = [source, tmp_path / "b"] if shallow else []
    assert ids(tmp_path / "c", roots) == [*range(20), 99]


@pytest.mark.slow
@pytest.mark.parametrize("shallow", [True, False])
def test_deletion_vectors_are_the_clones_too(tmp_path: Path, shallow: bool) -> None:
    table = every_kind_of_deletion_vector(tmp_path / "t")
    clone_table(tmp_path / "t", tmp_path / "c", shallow=shallow)
    expected = sorted(table.expected[-1])
    # DuckDB takes no absolute path of a data file.
    reader = by_deltalake if shallow else by_duckdb
    assert reader(tmp_path / "c", "file, id") == expected
    assert by_deltalake(tmp_path / "c", "file, id") == expected
    found = DeltaTable(tmp_path / "c", allowed_roots=[tmp_path / "t"]).to_pyarrow_table()
    assert sorted(zip(found["file"].to_pylist(), found["id"].to_pylist(), strict=True)) == expected
    kinds = {add.deletion_vector.storage_type for add in live(tmp_path / "c") if add.deletion_vector}
    assert kinds == ({"p", "i"} if shallow else {"u", "i"})
    if not shallow:
        stored = [name for name in data_objects(tmp_path / "c") if name.endswith(".bin")]
        shared = {
            add.deletion_vector.path_or_inline_dv
            for add in live(tmp_path / "t")
            if add.deletion_vector is not None and add.deletion_vector.storage_type == "u"
        }
        assert len(stored) == len(shared)
    assert clone_table(tmp_path / "t", tmp_path / "c", shallow=shallow).committed is None
    number, row = min(table.expected[-1])
    table.delete({number: [row]}, inline_max_bytes=-1)
    again = clone_table(tmp_path / "t", tmp_path / "c", shallow=shallow)
    assert (again.files_added, again.files_removed) == (1, 1)
    assert reader(tmp_path / "c", "file, id") == sorted(table.expected[-1])


def test_a_table_that_is_no_clone_is_never_replaced(make_table: MakeTable, tmp_path: Path) -> None:
    source, other = make_table(name="t"), make_table(name="other")
    before = objects(other)
    with pytest.raises(CloneError, match="not a clone of"):
        clone_table(source, other)
    assert objects(other) == before
    clone_table(source, tmp_path / "c")
    with pytest.raises(CloneError, match="not a clone of"):
        clone_table(other, tmp_path / "c")


@pytest.mark.parametrize("place", [".", "within", ".."])
def test_places_that_overlap_are_refused(make_table: MakeTable, place: str) -> None:
    source = make_table()
    with pytest.raises(CloneError, match="within the other"):
        clone_table(source, source / place)


def test_a_file_of_another_size_stops_the_clone_and_leaves_nothing(
    make_table: MakeTable, tmp_path: Path
) -> None:
    source = make_table(commits=4)
    damaged = source / live(source)[2].path
    damaged.write_bytes(damaged.read_bytes() + b"x")
    with pytest.raises(CloneError, match="the log records"):
        clone_table(source, tmp_path / "c", executor=InlineExecutor(1))
    assert data_objects(tmp_path / "c") == set()
    assert not DeltaTable.is_deltatable(tmp_path / "c")


def test_a_missing_file_stops_the_clone_and_leaves_nothing(make_table: MakeTable, tmp_path: Path) -> None:
    source = make_table(commits=4)
    (source / live(source)[1].path).unlink()
    with pytest.raises(MissingDataFileError):
        clone_table(source, tmp_path / "c")
    assert data_objects(tmp_path / "c") == set()


def test_who_loses_against_another_writer_deletes_its_own_copies_alone(
    make_table: MakeTable, helpers: Any, tmp_path: Path
) -> None:
    source = make_table(commits=2)
    clone_table(source, tmp_path / "c")
    write_deltalake(source, helpers.rows(60, 1), mode="append")
    plan = plan_clone(Snapshot.load(LocalLogStore(source)), LocalLogStore(tmp_path / "c"), shallow=False)
    write_deltalake(tmp_path / "c", helpers.rows(70, 1), mode="append")
    before = data_objects(tmp_path / "c")
    with pytest.raises(ConcurrentModificationError):
        apply_clone(plan)
    assert data_objects(tmp_path / "c") == before
    assert ids(tmp_path / "c") == [*range(20), 70]


def test_two_clones_at_once_make_one_table(make_table: MakeTable, helpers: Any, tmp_path: Path) -> None:
    source = make_table(commits=2)
    plans = [
        plan_clone(Snapshot.load(LocalLogStore(source)), LocalLogStore(tmp_path / "c"), shallow=False)
        for _ in range(2)
    ]
    apply_clone(plans[0])
    before = data_objects(tmp_path / "c")
    with pytest.raises(ConcurrentModificationError):
        apply_clone(plans[1])
    assert data_objects(tmp_path / "c") == before
    assert helpers.content(tmp_path / "c") == helpers.content(source)


def test_an_interrupted_clone_leaves_nothing(make_table: MakeTable, tmp_path: Path) -> None:
    source = make_table(commits=4)

    class Interrupted:
        name = "interrupted"

        def cores_per_task(self, tasks: int) -> int:
            return 1

        def map(self, function: Any, tasks: Any) -> Iterator[Any]:
            yield 0, function(tasks[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone_table(source, tmp_path / "c", executor=Interrupted())
    assert data_objects(tmp_path / "c") == set()


def test_a_repeated_call_with_a_key_copies_nothing(
    make_table: MakeTable, helpers: Any, tmp_path: Path
) -> None:
    source = make_table(commits=1)
    properties = CommitProperties(txn=("job", 1))
    clone_table(source, tmp_path / "c", commit_properties=properties)
    write_deltalake(source, helpers.rows(60, 1), mode="append")
    again = clone_table(source, tmp_path / "c", commit_properties=properties)
    assert again.committed is not None
    assert again.committed.already_applied
    assert again.version is None
    assert ids(tmp_path / "c") == list(range(10))


def test_domains_row_ids_and_protocol_go_with_the_rows(tmp_path: Path) -> None:
    features = ("rowTracking", "domainMetadata")
    log = LogBuilder(tmp_path / "t")
    table = write_deltalake(tmp_path / "plain", pa.table({"id": [1, 2, 3]}))
    assert table is not None
    (data,) = live(tmp_path / "plain")
    (tmp_path / "t").mkdir(exist_ok=True)
    (tmp_path / "t" / data.path).write_bytes((tmp_path / "plain" / data.path).read_bytes())
    log.commit(
        protocol(min_writer_version=7, writer_features=frozenset(features)),
        metadata(partition_columns=(), schema_string=DeltaTable(tmp_path / "plain").metadata().schema_string),
        AddFile(
            path=data.path,
            size_bytes=data.size_bytes,
            modification_time_ms=1,
            stats=data.stats,
            base_row_id=40,
            default_row_commit_version=0,
        ),
        DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":49}'),
        DomainMetadata(domain="mine", configuration="{}"),
        DomainMetadata(domain="gone", configuration="{}", removed=True),
    )
    clone_table(tmp_path / "t", tmp_path / "c")
    clone = DeltaTable(tmp_path / "c")
    (add,) = live(tmp_path / "c")
    assert (add.base_row_id, add.default_row_commit_version) == (40, 0)
    domains = clone.domain_metadata()
    assert set(domains) == {"delta.rowTracking", "mine"}
    assert json.loads(domains["delta.rowTracking"].configuration) == {"rowIdHighWaterMark": 49}
    assert clone.protocol().writer_features == frozenset(features)


@pytest.mark.parametrize("shallow", [True, False])
def test_ids_that_the_source_gave_since_are_the_clones_too(tmp_path: Path, shallow: bool) -> None:
    write_deltalake(tmp_path / "plain", pa.table({"id": [1, 2, 3]}))
    (data,) = live(tmp_path / "plain")
    log = LogBuilder(tmp_path / "t")
    (tmp_path / "t").mkdir(exist_ok=True)
    (tmp_path / "t" / data.path).write_bytes((tmp_path / "plain" / data.path).read_bytes())
    listed = frozenset({"rowTracking", "domainMetadata"})
    text = DeltaTable(tmp_path / "plain").metadata().schema_string
    described = metadata(partition_columns=(), schema_string=text)
    file = AddFile(path=data.path, size_bytes=data.size_bytes, modification_time_ms=1, stats=data.stats)
    log.commit(protocol(min_writer_version=7, writer_features=frozenset({"domainMetadata"})), described, file)
    clone_table(tmp_path / "t", tmp_path / "c", shallow=shallow)
    log.commit(
        protocol(min_writer_version=7, writer_features=listed),
        replace(
            described,
            configuration={
                "delta.enableRowTracking": "true",
                "delta.rowTracking.materializedRowIdColumnName": "_id",
                "delta.rowTracking.materializedRowCommitVersionColumnName": "_version",
            },
        ),
        replace(file, base_row_id=10, default_row_commit_version=1, data_change=False),
        DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":12}'),
    )
    result = clone_table(tmp_path / "t", tmp_path / "c", shallow=shallow)
    assert (result.files_copied, result.files_removed) == (0, 0)
    clone = DeltaTable(tmp_path / "c", allowed_roots=[tmp_path / "t"])
    found = clone.to_pyarrow_table(row_ids=True)
    assert found["_row_id"].to_pylist() == [10, 11, 12]
    watermark = clone.domain_metadata()["delta.rowTracking"].configuration
    assert json.loads(watermark) == {"rowIdHighWaterMark": 12}
    assert clone_table(tmp_path / "t", tmp_path / "c", shallow=shallow).committed is None


def test_the_clones_protocol_never_goes_down(make_table: MakeTable, tmp_path: Path) -> None:
    source = make_table(commits=1)
    clone_table(source, tmp_path / "c")
    DeltaTable(tmp_path / "c").alter.add_constraint({"some": "id >= 0"})
    before = DeltaTable(tmp_path / "c").protocol()
    clone_table(source, tmp_path / "c")
    after = DeltaTable(tmp_path / "c")
    assert after.protocol() == before
    assert "delta.constraints.some" not in after.metadata().configuration


def test_in_commit_times_begin_anew(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    DeltaTable(tmp_path / "t").alter.set_properties({"delta.enableInCommitTimestamps": "true"})
    clone_table(tmp_path / "t", tmp_path / "c")
    configuration = DeltaTable(tmp_path / "c").metadata().configuration
    assert "delta.inCommitTimestampEnablementVersion" not in configuration
    info = commit_text(tmp_path / "c", 0)[0]["commitInfo"]
    assert info["inCommitTimestamp"] > 0


def test_in_commit_times_that_the_source_has_got_since_begin_in_the_clone_too(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    clone_table(tmp_path / "t", tmp_path / "c")
    write_deltalake(tmp_path / "c", pa.table({"id": [2]}), mode="append")
    DeltaTable(tmp_path / "t").alter.set_properties({"delta.enableInCommitTimestamps": "true"})
    clone_table(tmp_path / "t", tmp_path / "c")
    clone = DeltaTable(tmp_path / "c")
    began = commit_text(tmp_path / "c", 2)[0]["commitInfo"]["inCommitTimestamp"]
    said = {key: value for key, value in clone.metadata().configuration.items() if "nCommitTimestamp" in key}
    assert said == {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(began),
    }
    assert [DeltaTable(tmp_path / "c", timestamp_ms=e.timestamp_ms).version() for e in clone.history()] == [
        2,
        1,
        0,
    ]
    assert clone_table(tmp_path / "t", tmp_path / "c").committed is None
    DeltaTable(tmp_path / "t").alter.set_properties({"delta.enableInCommitTimestamps": "false"})
    assert clone_table(tmp_path / "t", tmp_path / "c").committed is None


def test_a_feature_that_nobody_knows_is_refused_before_any_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    text = json.dumps(
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["other"]}}
    )
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text(text + "\n")
    assert DeltaTable(tmp_path / "t").protocol() == Protocol(
        min_reader_version=1, min_writer_version=7, writer_features=frozenset({"other"})
    )
    with pytest.raises(UnsupportedTableFeatureError, match="other"):
        clone_table(tmp_path / "t", tmp_path / "c")
    assert data_objects(tmp_path / "c") == set()


def test_random_histories_are_followed(tmp_path: Path) -> None:
    rng = random.Random(7)
    write_deltalake(tmp_path / "t", pa.table({"id": pa.array(range(50), pa.int64())}))
    for step in range(6):
        low = rng.randrange(40)
        if rng.random() < 0.5:
            PeerTable(str(tmp_path / "t")).delete(f"id >= {low} AND id < {low + 5}")
        else:
            more = pa.table({"id": pa.array([100 + step], pa.int64())})
            write_deltalake(tmp_path / "t", more, mode="append")
        clone_table(tmp_path / "t", tmp_path / "c")
        assert by_deltalake(tmp_path / "c", "id") == by_deltalake(tmp_path / "t", "id")
