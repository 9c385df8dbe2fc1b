"""Dropping a table feature: afterwards who does not know it uses the table, and no row has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import deltalake
import pytest

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.actions import DeletionVectorDescriptor, DomainMetadata, Protocol
from delta_core.deletion_vectors.reader import deletion_vector_path
from delta_core.errors import (
    FeatureRemovalError,
)
from delta_core.scan.change_data import ChangeDataScan
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.upgrade import supported_features
from tests.support.dropped_tables import (
    BASE,
    PROTECTED,
    actions,
    by_peer,
    ids,
    make,
    operations,
    rows,
    snapshot_of,
)
from tests.support.log_builder import LogBuilder, metadata, protocol
from tests.support.preserved_tables import TABLES, build
from tests.support.protocols import protocol_problems

pytestmark = pytest.mark.slow

CASES: Mapping[str, tuple[dict[str, str], frozenset[str]]] = {
    "deletionVectors": ({"enableDeletionVectors": "true"}, PROTECTED),
    "rowTracking": ({"enableRowTracking": "true"}, BASE | {"domainMetadata"}),
    "v2Checkpoint": ({"checkpointPolicy": "v2", "checkpointInterval": "2"}, PROTECTED),
    "inCommitTimestamp": ({"enableInCommitTimestamps": "true"}, BASE),
    "changeDataFeed": ({"enableChangeDataFeed": "true"}, BASE),
    "vacuumProtocolCheck": ({"feature__vacuumProtocolCheck": "supported"}, BASE),
    "timestampNtz": ({"feature__timestampNtz": "supported"}, BASE),
    "typeWidening": ({"feature__typeWidening": "supported"}, BASE),
    "columnMapping": ({"feature__columnMapping": "supported"}, BASE),
    "allowColumnDefaults": ({"feature__allowColumnDefaults": "supported"}, BASE),
    "checkConstraints": ({"feature__checkConstraints": "supported"}, BASE),
    "appendOnly": ({}, frozenset({"invariants"})),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_peer_reads_and_writes_on_and_every_version_stays(tmp_path: Path, name: str) -> None:
    configuration, left = CASES[name]
    table = make(tmp_path / "t", **configuration)
    path = tmp_path / "t"
    history = {version: ids(path, version) for version in range(table.version() + 1)}
    committed = table.alter.drop_feature(name.upper())
    assert committed.version == table.version()
    assert supported_features(table.protocol()) == left
    assert protocol_problems(table.protocol()) == ()
    if left == BASE:
        assert table.protocol() == Protocol(min_reader_version=1, min_writer_version=2)
    kept = {"delta.checkpointInterval": "2"} if name == "v2Checkpoint" else {}
    if left == PROTECTED:
        kept[CHECKPOINT_PROTECTION] = str(committed.version)
    assert table.metadata().configuration == kept
    assert by_peer(path) == history[max(history)]
    assert {version: ids(path, version) for version in history} == history
    info = table.history(1)[0].commit_info
    assert info.operation == "DROP FEATURE"
    assert info.operation_parameters == {"featureName": name, "truncateHistory": "false"}
    write_deltalake(table, rows(100), mode="append")
    if left == BASE:
        deltalake.write_deltalake(str(path), rows(200), mode="append")
        assert (
            ids(path) == by_peer(path) == sorted([*history[max(history)], *range(100, 110), *range(200, 210)])
        )
    with pytest.raises(FeatureRemovalError, match="does not support"):
        table.alter.drop_feature(name)


@pytest.mark.parametrize("name", ["deletionVectors", "rowTracking", "v2Checkpoint", "changeDataFeed"])
def test_it_can_be_turned_on_and_dropped_again(tmp_path: Path, name: str) -> None:
    configuration, _ = CASES[name]
    table = make(tmp_path / "t", **configuration)
    given = {f"delta.{key}": value for key, value in configuration.items()}
    first = table.alter.drop_feature(name)
    table.alter.set_properties(given)
    assert name in supported_features(table.protocol())
    table.delete("id = 5")
    expected = ids(tmp_path / "t")
    second = table.alter.drop_feature(name)
    assert second.version > first.version
    assert name not in supported_features(table.protocol())
    if name in ("deletionVectors", "v2Checkpoint"):
        assert table.metadata().configuration[CHECKPOINT_PROTECTION] == str(second.version)
    assert ids(tmp_path / "t") == by_peer(tmp_path / "t") == expected


def test_deletion_vectors_are_purged_and_a_checkpoint_bars_the_way_to_them(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors="true")
    assert snapshot_of(tmp_path).files.has_deletion_vectors
    dropped = table.alter.drop_feature("deletionVectors").version
    tombstones = "Deletion Vector Tombstones"
    assert operations(tmp_path)[:4] == ["DROP FEATURE", tombstones, "REORG", "UNSET TBLPROPERTIES"]
    log = tmp_path / "_delta_log"
    assert (log / f"{dropped - 1:020d}.checkpoint.parquet").exists()
    assert (log / f"{dropped:020d}.checkpoint.parquet").exists()
    for version in range(dropped - 1):
        (log / f"{version:020d}.json").unlink()
    assert ids(tmp_path) == by_peer(tmp_path) == [i for i in range(30) if i != 3]


def test_row_ids_leave_every_file_and_start_anew(tmp_path: Path) -> None:
    table = make(tmp_path, enableRowTracking="true")
    before = snapshot_of(tmp_path)
    table.alter.drop_feature("rowTracking")
    assert operations(tmp_path)[:3] == ["DROP FEATURE", "ROW TRACKING UNBACKFILL", "SET TBLPROPERTIES"]
    after = snapshot_of(tmp_path)
    files = after.files.to_table(["path", "base_row_id", "default_row_commit_version"])
    assert files["base_row_id"].null_count == files["default_row_commit_version"].null_count == len(files)
    assert sorted(files["path"].to_pylist()) == sorted(before.files.to_table(["path"])["path"].to_pylist())
    assert after.domain("delta.rowTracking") is None
    (gone,) = actions(tmp_path, after.version, "domainMetadata")
    assert gone["removed"]
    assert gone["configuration"] == before.domain("delta.rowTracking").configuration  # type: ignore[union-attr]
    table.alter.set_properties({"delta.enableRowTracking": "true"})
    found = table.to_pyarrow_table(row_ids=True)["_row_id"].to_pylist()
    assert len(set(found)) == len(found) == 29


def test_readers_of_changes_see_nothing(tmp_path: Path) -> None:
    table = make(
        tmp_path, enableDeletionVectors="true", enableRowTracking="true", enableChangeDataFeed="true"
    )
    since = table.version() + 1
    table.alter.drop_feature("rowTracking")
    table.alter.drop_feature("deletionVectors")
    scan = ChangeDataScan(table.snapshot, starting_version=since)
    assert sum(batch.num_rows for batch in scan.to_batches()) == 0


def test_a_log_without_traces_needs_no_protection(tmp_path: Path) -> None:
    for number in range(2):
        write_deltalake(tmp_path, rows(number), mode="append")
    table = DeltaTable(tmp_path)
    table.alter.add_feature("deletionVectors")
    committed = table.alter.drop_feature("deletionVectors")
    assert table.protocol() == Protocol(min_reader_version=1, min_writer_version=2)
    assert committed.version == 3


def test_a_property_of_the_past_counts_as_a_trace(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(0), configuration={"delta.enableDeletionVectors": "true"})
    table = DeltaTable(tmp_path)
    table.alter.unset_properties(["delta.enableDeletionVectors"])
    table.alter.drop_feature("deletionVectors")
    assert "checkpointProtection" in supported_features(table.protocol())


def test_a_file_that_came_back_without_its_vector_is_written_anew(tmp_path: Path) -> None:
    """A checkpoint has the file, and its removal with a vector: who knows only paths takes it for removed."""
    table = make(tmp_path, enableDeletionVectors="true")
    table.restore(table.version() - 1)
    back = {
        row["path"]
        for row in snapshot_of(tmp_path).tombstones(since_ms=0).to_pylist()
        if row["deletion_vector"]
    }
    live = set(snapshot_of(tmp_path).files.to_table(["path"])["path"].to_pylist())
    assert len(back & live) == 1
    table.alter.drop_feature("deletionVectors")
    live = set(table.snapshot.files.to_table(["path"])["path"].to_pylist())
    assert not back & live
    assert ids(tmp_path) == by_peer(tmp_path) == list(range(30))


def test_a_vacuum_by_who_knows_no_vectors_leaves_those_that_older_versions_need(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors="true")
    write_deltalake(table, rows(1000, 20_000), mode="append")
    table.delete("id > 1000 AND id % 3 = 0")  # too many for a vector in the log itself
    dvs = {
        deletion_vector_path(DeletionVectorDescriptor(**row["deletion_vector"]), root_uri=table.table_uri)
        for row in table.snapshot.files.to_table(["deletion_vector"]).to_pylist()
        if row["deletion_vector"]
    }
    stored = dvs - {None}
    assert stored
    dropped = table.alter.drop_feature("deletionVectors").version
    removes = actions(tmp_path, dropped - 1, "remove")
    assert {remove["path"] for remove in removes} == stored
    assert not any(remove["dataChange"] for remove in removes)
    assert not set(table.vacuum()) & stored
    # Back again, and dropped again: they are needed longer than the first tombstones say.
    table.restore(dropped - 4)
    assert table.snapshot.files.has_deletion_vectors
    again = table.alter.drop_feature("deletionVectors").version
    later = actions(tmp_path, again - 1, "remove")
    assert {remove["path"] for remove in later} == stored
    assert min(r["deletionTimestamp"] for r in later) > max(r["deletionTimestamp"] for r in removes)


def test_what_was_made_for_iceberg_is_taken_apart_feature_by_feature(tmp_path: Path) -> None:
    build(tmp_path, TABLES["for Iceberg"])
    table = DeltaTable(tmp_path)
    expected = sorted(map(str, table.to_pyarrow_table().to_pylist()))
    with pytest.raises(FeatureRemovalError, match="cannot be dropped now") as caught:
        table.alter.drop_feature("columnMapping")
    assert "Drop icebergCompatV2 first" in caught.value.fix
    table.alter.drop_feature("icebergCompatV2")
    assert "delta.enableIcebergCompatV2" not in table.metadata().configuration
    table.alter.rename_column("the name", "name")
    for name in ("columnMapping", "rowTracking", "domainMetadata"):
        table.alter.drop_feature(name)
    peer = deltalake.DeltaTable(str(tmp_path))
    assert supported_features(table.protocol()) <= PROTECTED
    found = [{"the name": row["name"], **row} for row in peer.to_pyarrow_table().to_pylist()]
    names = ("id", "the name", "part", "nested")
    assert sorted(str({name: row[name] for name in names}) for row in found) == expected


def test_partition_columns_that_files_hold_are_no_harm(tmp_path: Path) -> None:
    build(tmp_path, TABLES["materialised"])
    table = DeltaTable(tmp_path)
    expected = sorted(table.to_pyarrow_table()["id"].to_pylist())
    table.alter.drop_feature("materializePartitionColumns")
    assert by_peer(tmp_path) == ids(tmp_path) == expected


def test_a_version_of_before_comes_back_with_what_it_needs(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors="true", columnMapping__mode="name")
    before = table.version()
    table.alter.rename_column("t", "text")
    for name in ("deletionVectors", "columnMapping"):
        table.alter.drop_feature(name)
    protected = table.metadata().configuration[CHECKPOINT_PROTECTION]
    table.restore(before)
    assert ids(tmp_path) == ids(tmp_path, before)
    assert table.schema().names == ("id", "t")
    assert {"deletionVectors", "columnMapping", "checkpointProtection"} <= supported_features(
        table.protocol()
    )
    assert table.metadata().configuration[CHECKPOINT_PROTECTION] == protected
    for name in ("deletionVectors", "columnMapping"):
        table.alter.drop_feature(name)
    assert by_peer(tmp_path) == ids(tmp_path, before)


def test_clustering_is_switched_off_with_what_it_said(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "t")
    said = DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[["id"]]}')
    writers = frozenset({"clustering", "domainMetadata", "appendOnly"})
    log.commit(protocol(min_writer_version=7, writer_features=writers), metadata(), said)
    table = DeltaTable(tmp_path / "t")
    table.alter.drop_feature("clustering")
    assert table.domain_metadata() == {}
    assert supported_features(table.protocol()) == writers - {"clustering"}
    (gone,) = actions(tmp_path / "t", 1, "domainMetadata")
    assert gone == {"domain": said.domain, "configuration": said.configuration, "removed": True}


def test_a_legacy_table_lists_what_is_left(tmp_path: Path) -> None:
    table = make(tmp_path, minWriterVersion="4")
    table.alter.drop_feature("generatedColumns")
    assert supported_features(table.protocol()) == BASE | {"checkConstraints", "changeDataFeed"}
    table.alter.drop_feature("changeDataFeed")
    assert table.protocol() == Protocol(min_reader_version=1, min_writer_version=3)


def test_a_repeated_call_with_a_key_changes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors="true")
    key = CommitProperties(txn=("drop", 1), user_metadata="why")
    first = table.alter.drop_feature("deletionVectors", commit_properties=key)
    again = table.alter.drop_feature("deletionVectors", commit_properties=key)
    assert again.already_applied
    assert again.version == first.version == table.version()
    entries = table.history(3)
    assert {entry.commit_info.user_metadata for entry in entries} == {"why"}


def test_a_file_with_a_vector_and_no_count_of_its_rows_loses_its_ids_too(tmp_path: Path) -> None:
    """Its row count must be in the log when it is added again."""
    build(tmp_path, TABLES["tracked"])
    table = DeltaTable(tmp_path)
    expected = ids(tmp_path)
    log = tmp_path / "_delta_log"
    for file in sorted(log.glob("*.json"))[1:-1]:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.get("add", {}).pop("stats", None)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = DeltaTable(tmp_path)
    table.alter.drop_feature("rowTracking")
    files = table.snapshot.files.to_table(["base_row_id", "stats"])
    assert files["base_row_id"].null_count == len(files)
    assert all("numRecords" in stats for stats in files["stats"].to_pylist())
    assert ids(tmp_path) == expected
