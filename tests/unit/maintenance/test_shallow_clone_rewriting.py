"""Rewriting a shallow clone: files are read where its source has them, and written into the clone."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.actions import AddFile, Protocol
from delta_core.errors import PathEscapeError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.rewriting.layout import layout_fields
from delta_core.schema.types import LONG
from delta_core.storage.data_access import DataAccess, open_allowed_roots
from delta_core.table_features.upgrade import supported_features
from tests.support.log_builder import LogBuilder, add, metadata, protocol
from tests.support.preserved_tables import AcrossProcesses, delete

pytestmark = pytest.mark.slow

FEATURES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
}
COUNT = 40
Verb = Callable[[DeltaTable, Any], object]

VERBS: dict[str, Verb] = {
    "compact": lambda table, executor: table.optimize.compact(executor=executor),
    "purge": lambda table, executor: table.optimize.purge(executor=executor),
    "z_order": lambda table, executor: table.optimize.z_order(["id", "x"], executor=executor),
    "z_order over disk": lambda table, executor: table.optimize.z_order(
        ["id", "x"], memory_limit_bytes=1, executor=executor
    ),
    "cluster": lambda table, executor: table.optimize.cluster(executor=executor),
    "cluster over disk": lambda table, executor: table.optimize.cluster(
        memory_limit_bytes=1, executor=executor
    ),
}


class OtherProcess(InlineExecutor):
    """Runs tasks in a new process, which has nothing but what they say."""

    def map(self, function: Any, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """See the executor."""
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            yield from enumerate(pool.map(function, json.loads(json.dumps(tasks))))


def rows(first: int) -> pa.Table:
    ids = range(first, first + COUNT)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "x": [i * 7 % 31 for i in ids], "p": [i % 2 for i in ids]}
    )


def cloned(tmp_path: Path, **options: Any) -> tuple[Path, Path]:
    """A table, and a shallow clone that went on: its own rows, and rows of the source's that it deleted."""
    source, clone = tmp_path / "s é%20+", tmp_path / "c"
    configuration = {**FEATURES, **options.pop("configuration", {})}
    write_deltalake(source, rows(0), configuration=configuration, **options)
    for number in (1, 2):
        write_deltalake(source, rows(number * COUNT), mode="append")
    delete(source, [3, 8], files=99)
    clone_table(source, clone, shallow=True)
    dvs = DeltaTable(clone).snapshot.files.to_table(["deletion_vector"])["deletion_vector"].to_pylist()
    assert {dv["storage_type"] for dv in dvs} == {"p"}, "the source's vectors are outside, too"
    write_deltalake(clone, rows(3 * COUNT), mode="append")
    DeltaTable(clone, allowed_roots=[source]).delete("id % 10 = 4")
    return source, clone


def content(*roots: Path, ids: bool = True) -> list[str]:
    """The rows of the first, which may share files with the others."""
    found = DeltaTable(roots[0], allowed_roots=roots[1:]).to_pyarrow_table(row_ids=ids)
    return sorted(map(str, found.to_pylist()))


def by_deltalake(path: Path) -> list[str]:
    query = QueryBuilder().register("t", PeerTable(str(path)))
    return sorted(map(str, pa.table(query.execute("SELECT * FROM t").read_all()).to_pylist()))


def objects(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def paths(path: Path) -> list[str]:
    found: list[str] = DeltaTable(path).snapshot.files.to_table(["path"])["path"].to_pylist()
    return found


def options_of(verb: str) -> dict[str, Any]:
    return {"cluster_by": ["id", "x"]} if verb.startswith("cluster") else {"partition_by": ["p"]}


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_clone_gets_files_of_its_own_and_the_source_keeps_its_own(tmp_path: Path, verb: str) -> None:
    source, clone = cloned(tmp_path, **options_of(verb))
    before, untouched = content(clone, source), objects(source)
    plain = content(clone, source, ids=False)
    assert any(path.startswith("file:") for path in paths(clone))
    table = DeltaTable(clone, allowed_roots=[source])
    version = table.version()
    VERBS[verb](table, AcrossProcesses())
    assert table.version() == version + 1
    assert not any(path.startswith("file:") for path in paths(clone))
    assert content(clone) == before
    assert by_deltalake(clone) == plain
    assert table.load_cdf(version + 1).read_all().num_rows == 0
    assert objects(source) == untouched
    DeltaTable(clone).vacuum(0, dry_run=False, enforce_retention=False, force=True)
    assert (objects(source), content(clone)) == (untouched, before)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_what_the_caller_does_not_allow_is_not_read(tmp_path: Path, verb: str) -> None:
    source, clone = cloned(tmp_path, **options_of(verb))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before, untouched = objects(clone), objects(source)
    for roots in ([], [elsewhere]):
        with pytest.raises(PathEscapeError, match="Allow the file's root"):
            VERBS[verb](DeltaTable(clone, allowed_roots=roots), None)
        assert (objects(clone), objects(source)) == (before, untouched)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["compact", "z_order over disk"])
def test_a_task_opens_the_roots_in_another_process(tmp_path: Path, verb: str) -> None:
    source, clone = cloned(tmp_path)
    before = content(clone, source)
    VERBS[verb](DeltaTable(clone, allowed_roots=[source]), OtherProcess())
    assert content(clone) == before


def test_a_task_names_the_roots_and_not_what_opens_them(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(0))
    options = {"aws_access_key_id": "who", "aws_secret_access_key": "not-to-be-told", "region": "x"}
    roots = open_allowed_roots(["s3://bucket/source"], storage_options=options)
    task = layout_fields(DeltaTable(tmp_path).snapshot, access=DataAccess(allowed_roots=roots))
    assert task["allowed_root_uris"] == ["s3://bucket/source"]
    assert "not-to-be-told" not in json.dumps(task)


def test_files_of_one_name_below_several_roots(tmp_path: Path) -> None:
    adds = []
    for number, folder in enumerate(("a", "b", "t")):
        file = tmp_path / folder / "f.parquet"
        file.parent.mkdir()
        pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), file)
        name = file.name if folder == "t" else f"file://{file}"
        adds.append(add(name, size_bytes=file.stat().st_size))
    LogBuilder(tmp_path / "t").commit(protocol(), metadata(), *adds)
    table = DeltaTable(tmp_path / "t", allowed_roots=[tmp_path / "a", tmp_path / "b"])
    table.optimize.compact(executor=AcrossProcesses())
    assert sorted(DeltaTable(tmp_path / "t").to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]


def mapped(tmp_path: Path) -> tuple[Path, Path]:
    return cloned(tmp_path, partition_by=["p"], configuration={"delta.columnMapping.mode": "name"})


def widened(tmp_path: Path) -> tuple[Path, Path]:
    source, clone = tmp_path / "s", tmp_path / "c"
    narrow = pa.table({"id": pa.array([1, 2], pa.int32())})
    configuration = {**FEATURES, "delta.enableTypeWidening": "true"}
    write_deltalake(source, narrow, configuration=configuration)
    DeltaTable(source).alter.change_type("id", LONG)
    clone_table(source, clone, shallow=True)
    return source, clone


def uncounted(tmp_path: Path, *, numbered: bool) -> tuple[Path, Path]:
    """Files whose statistics do not say how many rows they have."""
    source, clone = tmp_path / "s", tmp_path / "c"
    source.mkdir()
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), source / "f.parquet")
    file = AddFile(
        path="f.parquet",
        partition_values={},
        size_bytes=(source / "f.parquet").stat().st_size,
        modification_time_ms=1,
        data_change=True,
        base_row_id=0 if numbered else None,
        default_row_commit_version=0 if numbered else None,
    )
    features = frozenset({"rowTracking", "domainMetadata"} if numbered else {"domainMetadata"})
    log = LogBuilder(source)
    log.commit(
        Protocol(min_reader_version=1, min_writer_version=7, writer_features=features), metadata(), file
    )
    clone_table(source, clone, shallow=True)
    return source, clone


DROPS: dict[str, Callable[[Path], tuple[Path, Path]]] = {
    "deletionVectors": lambda tmp_path: cloned(tmp_path, partition_by=["p"]),
    "columnMapping": mapped,
    "typeWidening": widened,
    "rowTracking": lambda tmp_path: uncounted(tmp_path, numbered=True),
}


@pytest.mark.parametrize("feature", sorted(DROPS))
def test_a_feature_is_dropped_from_the_clone(tmp_path: Path, feature: str) -> None:
    source, clone = DROPS[feature](tmp_path)
    before, untouched = content(clone, source, ids=False), objects(source)
    table = DeltaTable(clone, allowed_roots=[source])
    version = table.version()
    table.alter.drop_feature(feature, executor=AcrossProcesses())
    assert feature not in supported_features(table.protocol())
    assert content(clone, source, ids=False) == before
    assert by_deltalake(clone) == before
    assert objects(source) == untouched
    if table.metadata().configuration.get("delta.enableChangeDataFeed"):
        assert table.load_cdf(version + 1).read_all().num_rows == 0


@pytest.mark.parametrize("feature", sorted(DROPS))
def test_a_drop_that_cannot_go_on_does_not_begin(tmp_path: Path, feature: str) -> None:
    source, clone = DROPS[feature](tmp_path)
    before, untouched = objects(clone), objects(source)
    with pytest.raises(PathEscapeError, match="Allow the file's root"):
        DeltaTable(clone).alter.drop_feature(feature)
    assert (objects(clone), objects(source)) == (before, untouched)


def test_only_the_files_that_a_drop_opens_must_be_allowed(tmp_path: Path) -> None:
    """Rows of the source's, without vectors: there is nothing to purge."""
    source, clone = tmp_path / "s", tmp_path / "c"
    write_deltalake(source, rows(0), configuration=FEATURES)
    clone_table(source, clone, shallow=True)
    table = DeltaTable(clone)
    table.alter.drop_feature("deletionVectors")
    table.alter.drop_feature("rowTracking")
    assert not {"deletionVectors", "rowTracking"} & supported_features(table.protocol())
    assert content(clone, source, ids=False) == content(source, ids=False)


def test_a_link_out_of_the_table_stops_a_drop_before_it_begins(tmp_path: Path) -> None:
    source, _ = mapped(tmp_path)
    file = next(source.rglob("*.parquet"))
    file.rename(tmp_path / "moved.parquet")
    file.symlink_to(tmp_path / "moved.parquet")
    version = DeltaTable(source).version()
    with pytest.raises(PathEscapeError, match="leads through a symbolic link"):
        DeltaTable(source).alter.drop_feature("columnMapping")
    assert DeltaTable(source).version() == version


@pytest.mark.parametrize("way", ["optimize", "property"])
def test_rows_of_the_source_are_counted_where_that_is_allowed(tmp_path: Path, way: str) -> None:
    source, clone = uncounted(tmp_path, numbered=False)

    def enable(table: DeltaTable) -> None:
        if way == "optimize":
            table.optimize.enable_row_tracking()
        else:
            table.alter.set_properties({"delta.enableRowTracking": "true"})

    before = objects(clone)
    with pytest.raises(PathEscapeError, match="Allow the file's root"):
        enable(DeltaTable(clone))
    assert objects(clone) == before
    enable(DeltaTable(clone, allowed_roots=[source]))
    found = DeltaTable(clone, allowed_roots=[source]).to_pyarrow_table(row_ids=True)
    assert found["_row_id"].to_pylist() == [0, 1]
