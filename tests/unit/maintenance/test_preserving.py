"""Compaction and Z-order preserve everything that tables with features have besides their rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.actions import Action, DomainMetadata
from delta_core.data.row_pipeline import write_rows
from delta_core.data.write_plan import WritePlan
from delta_core.deletion_vectors.file_update import removed
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.errors import ConfigurationError, InvalidTableError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering.plan import plan_z_order
from delta_core.maintenance.compaction import plan_compaction
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.file_actions import add_actions
from tests.support.planned_tables import column
from tests.support.preserved_tables import (
    COUNT,
    TABLES,
    AcrossProcesses,
    Case,
    Fingerprint,
    build,
    commit,
    create,
    delete,
    fingerprint,
    physical,
    rows_of,
)

pytestmark = pytest.mark.slow


def compact(root: Path, case: Case) -> None:
    snapshot = Snapshot.load(LocalLogStore(root))
    apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(executor=AcrossProcesses()))


def z_order(root: Path, case: Case, *, memory: int | None = None) -> None:
    snapshot = Snapshot.load(LocalLogStore(root))
    plan = plan_z_order(snapshot, [case.order_by])
    apply_rewrite(snapshot, plan, run=Run(executor=AcrossProcesses(2)), memory_limit_bytes=memory)


REWRITINGS: dict[str, Callable[[Path, Case], None]] = {
    "compaction": compact,
    "Z-order": z_order,
    "Z-order over disk": lambda root, case: z_order(root, case, memory=1),
}


@pytest.mark.parametrize("rewriting", sorted(REWRITINGS))
@pytest.mark.parametrize("name", sorted(TABLES))
def test_rows_ids_versions_and_changes_are_the_same(tmp_path: Path, name: str, rewriting: str) -> None:
    case, root = TABLES[name], tmp_path
    build(root, case)
    version = DeltaTable(root).version()
    before = fingerprint(root, up_to=version)
    assert before.rows
    REWRITINGS[rewriting](root, case)
    assert DeltaTable(root).version() == version + 1
    assert fingerprint(root, up_to=version) == before

    written = [json.loads(line) for line in _commit(root, version + 1)]
    adds = [line["add"] for line in written if "add" in line]
    removes = [line["remove"] for line in written if "remove" in line]
    assert len(adds) == (2 if case.partition_columns else 1)
    assert not any(action["dataChange"] for action in adds + removes)
    assert not any("deletionVector" in add for add in adds)
    assert all(add["tags"]["loaded"] == "by hand" and "file" not in add["tags"] for add in adds)
    info = next(line["commitInfo"] for line in written if "commitInfo" in line)
    tracked = "delta.enableRowTracking" in case.configuration
    assert (info.get("tags") or {}).get("delta.rowTracking.preserved") == ("true" if tracked else None)
    for add in adds:
        _check_file(root, case, add)


def _check_file(root: Path, case: Case, add: dict[str, Any]) -> None:
    """Names, ids, statistics and partition columns of a new file."""
    file = pq.ParquetFile(root / add["path"].replace("%20", " ").replace("%3D", "="))
    names = [physical(case, item["name"]) for item in case.fields]
    partitions = [physical(case, item) for item in case.partition_columns]
    inside = [item for item in names if item not in partitions]
    if case.features & {"materializePartitionColumns", "icebergCompatV2"}:
        inside += partitions
    if "delta.enableRowTracking" in case.configuration:
        inside += ["_row-id-col", "_row-version-col"]
    assert file.schema_arrow.names == inside
    assert sorted(add["partitionValues"]) == sorted(partitions)
    stats = json.loads(add["stats"])
    assert stats["numRecords"] == file.metadata.num_rows
    assert set(stats["nullCount"]) == set(names) - set(partitions)
    if "columnMapping" in case.features:
        ids = {item.name: (item.metadata or {}).get(b"PARQUET:field_id") for item in file.schema_arrow}
        assert ids["col-id"] == b"1"
        nested = file.schema_arrow.field("col-nested").type
        assert [(item.name, item.metadata[b"PARQUET:field_id"]) for item in nested.fields] == [
            ("col-up", b"5"),
            ("col-down", b"6"),
        ]
        assert set(stats["minValues"]["col-nested"]) == {"col-up", "col-down"}


def _commit(root: Path, version: int) -> list[str]:
    return (root / "_delta_log" / f"{version:020d}.json").read_text().splitlines()


def test_ids_that_were_materialised_once_are_kept_a_second_time(tmp_path: Path) -> None:
    case = TABLES["tracked"]
    build(tmp_path, case)
    compact(tmp_path, case)
    store = LocalLogStore(tmp_path)
    plan = WritePlan.of(case.protocol, case.metadata)
    commit(tmp_path, *write_rows(store, plan, rows_of(case, 1000, 10)).adds)
    delete(tmp_path, [0, 3])
    version = DeltaTable(tmp_path).version()
    before = fingerprint(tmp_path, up_to=version)
    z_order(tmp_path, case)
    assert fingerprint(tmp_path, up_to=version) == before
    assert len({row.split("'_row_id'")[1] for row in before.rows}) == len(before.rows)


def test_rows_deleted_after_the_plan_stay_deleted(tmp_path: Path) -> None:
    case = TABLES["tracked"]
    build(tmp_path, case)
    planned = Snapshot.load(LocalLogStore(tmp_path))
    plan = plan_compaction(planned)
    delete(tmp_path, [9, 10, 11])
    version = DeltaTable(tmp_path).version()
    before = fingerprint(tmp_path, up_to=version)
    result = apply_rewrite(planned, plan)
    assert fingerprint(tmp_path, up_to=version) == before
    assert result.rows == len(before.rows)


def test_rows_deleted_while_files_are_rewritten_stay_deleted(tmp_path: Path) -> None:
    case = TABLES["tracked"]
    build(tmp_path, case)
    seen: list[Fingerprint] = []

    class DeletesMeanwhile(InlineExecutor):
        def map(self, function: Any, tasks: Any) -> Any:
            yield from super().map(function, tasks)
            delete(tmp_path, [9, 10, 11])
            seen.append(fingerprint(tmp_path, up_to=DeltaTable(tmp_path).version()))

    snapshot = Snapshot.load(LocalLogStore(tmp_path))
    result = apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(executor=DeletesMeanwhile()))
    assert result.version == snapshot.version + 2
    assert [fingerprint(tmp_path, up_to=snapshot.version + 1)] == seen
    assert result.rows == len(seen[0].rows) + 3


def test_an_append_meanwhile_gets_ids_of_its_own(tmp_path: Path) -> None:
    case = TABLES["tracked"]
    build(tmp_path, case)
    store = LocalLogStore(tmp_path)

    class AppendsMeanwhile(InlineExecutor):
        def map(self, function: Any, tasks: Any) -> Any:
            plan = WritePlan.of(case.protocol, case.metadata)
            commit(tmp_path, *write_rows(store, plan, rows_of(case, 5000, 10)).adds)
            yield from super().map(function, tasks)

    snapshot = Snapshot.load(store)
    apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(executor=AppendsMeanwhile()))
    ids = DeltaTable(tmp_path).to_pyarrow_table(row_ids=True)["_row_id"].to_pylist()
    assert len(set(ids)) == len(ids)
    bases = [
        (add.base_row_id, json.loads(add.stats or "")["numRecords"])
        for add in add_actions(Snapshot.load(store).files.to_table(), data_change=True)
    ]
    (one, count), (two, _) = sorted(bases)
    assert one + count <= two, "files' own numbers do not overlap"


def test_files_whose_rows_are_all_deleted_leave_no_file(tmp_path: Path) -> None:
    case = TABLES["tracked"]
    build(tmp_path, case, appends=2)
    snapshot = Snapshot.load(LocalLogStore(tmp_path))
    live = list(add_actions(snapshot.files.to_table(), data_change=True))
    actions: list[Action] = []
    for file in live:
        dv = write_deletion_vectors(
            snapshot.store, [np.arange(COUNT, dtype=np.int64)], inline_max_bytes=1000
        ).descriptors[0]
        actions += [
            removed(file, deletion_timestamp_ms=1),
            replace(file, deletion_vector=dv, data_change=True),
        ]
    commit(tmp_path, *actions)
    parquet = len(list(tmp_path.rglob("*.parquet")))
    snapshot = Snapshot.load(LocalLogStore(tmp_path))
    result = apply_rewrite(snapshot, plan_compaction(snapshot))
    assert result.rows == 0
    assert result.metrics["numFilesAdded"] == 0
    assert Snapshot.load(LocalLogStore(tmp_path)).files.num_files == 0
    assert len(list(tmp_path.rglob("*.parquet"))) == parquet


def test_a_vector_that_names_a_row_beyond_the_file_stops_the_rewriting(tmp_path: Path) -> None:
    case = TABLES["tracked"]
    build(tmp_path, case, appends=2)
    snapshot = Snapshot.load(LocalLogStore(tmp_path))
    file = next(iter(add_actions(snapshot.files.to_table(), data_change=True)))
    dv = write_deletion_vectors(
        snapshot.store, [np.array([COUNT], np.int64)], inline_max_bytes=1000
    ).descriptors[0]
    commit(
        tmp_path,
        removed(file, deletion_timestamp_ms=1),
        replace(file, deletion_vector=dv, data_change=True),
    )
    snapshot = Snapshot.load(LocalLogStore(tmp_path))
    before = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(InvalidTableError, match=f"refers to row {COUNT}"):
        apply_rewrite(snapshot, plan_compaction(snapshot))
    assert set(tmp_path.rglob("*.parquet")) == before


def test_rows_without_ids_on_a_table_that_tracks_them_stop_the_rewriting(tmp_path: Path) -> None:
    case = TABLES["tracked"]
    build(tmp_path, case, appends=2)
    for log in (tmp_path / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            line.get("add", {}).pop("baseRowId", None)
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    snapshot = Snapshot.load(LocalLogStore(tmp_path))
    with pytest.raises(InvalidTableError, match="have no _row_id"):
        apply_rewrite(snapshot, plan_compaction(snapshot))


def test_narrow_files_are_widened(tmp_path: Path) -> None:
    narrow = Case(
        fields=(column("id", "integer"), column("part", "string")),
        features=frozenset({"typeWidening"}),
        configuration={"delta.enableTypeWidening": "true"},
    )
    store = LocalLogStore(tmp_path)
    create(tmp_path, narrow)
    plan = WritePlan.of(narrow.protocol, narrow.metadata)
    for first in (0, 10):
        rows = pa.table({"id": pa.array(range(first, first + 10), pa.int32()), "part": ["p"] * 10})
        commit(tmp_path, *write_rows(store, plan, rows).adds)
    changed = column("id", "long")
    changed["metadata"] = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    wide = replace(narrow, fields=(changed, column("part", "string")))
    commit(tmp_path, wide.metadata)
    before = fingerprint(tmp_path, up_to=3)
    compact(tmp_path, wide)
    assert fingerprint(tmp_path, up_to=3) == before
    (file,) = [add for line in _commit(tmp_path, 4) if (add := json.loads(line).get("add"))]
    assert pq.read_schema(tmp_path / file["path"]).field("id").type == pa.int64()


def clustered() -> Case:
    return Case(
        fields=(column("id", "long"), column("part", "string")),
        features=frozenset({"clustering", "domainMetadata"}),
        configuration={"delta.dataSkippingNumIndexedCols": "1"},
        domains=(
            DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[["part"]]}'),
        ),
    )


def test_clustering_columns_have_statistics_and_the_provider_stays(tmp_path: Path) -> None:
    case = clustered()
    store = LocalLogStore(tmp_path)
    create(tmp_path, case)
    plan = WritePlan.of(case.protocol, case.metadata)
    for first in (0, 10):
        adds = write_rows(store, plan, rows_of(case, first, 10)).adds
        commit(tmp_path, *[replace(add, clustering_provider="liquid") for add in adds])
    compact(tmp_path, case)
    (file,) = [add for line in _commit(tmp_path, 3) if (add := json.loads(line).get("add"))]
    assert set(json.loads(file["stats"])["nullCount"]) == {"id", "part"}
    assert file["clusteringProvider"] == "liquid"
    snapshot = Snapshot.load(store)
    assert snapshot.domain("delta.clustering") == case.domains[0]
    with pytest.raises(ConfigurationError, match="clustered table cannot be put into Z-order"):
        plan_z_order(snapshot, ["id"])


def test_files_of_different_hands_make_one_of_nobody(tmp_path: Path) -> None:
    case = clustered()
    store = LocalLogStore(tmp_path)
    create(tmp_path, case)
    plan = WritePlan.of(case.protocol, case.metadata)
    for provider in ("liquid", None):
        adds = write_rows(store, plan, rows_of(case, 0, 10)).adds
        commit(tmp_path, *[replace(add, clustering_provider=provider) for add in adds])
    compact(tmp_path, case)
    (file,) = [add for line in _commit(tmp_path, 3) if (add := json.loads(line).get("add"))]
    assert "clusteringProvider" not in file
