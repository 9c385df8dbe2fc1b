"""Which writer may write which table: what is let through is right, what is refused says who could do it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_core import DeltaTable
from delta_core.actions import DomainMetadata, Metadata, Protocol
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import UnsupportedTableFeatureError
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import (
    ALL_WRITER_KINDS,
    FEATURES,
    LOG_ONLY,
    ROWS_WITHOUT_SPARK,
    WriterKind,
    in_words,
)
from delta_core.table_features.support import require_write_support
from delta_core.transaction.transaction import Transaction
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove

CONFIGURATIONS = {
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
    "checkConstraints": {"delta.constraints.c": "id > 0"},
    "columnMapping": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "icebergCompatV1": {"delta.enableIcebergCompatV1": "true"},
    "icebergCompatV2": {"delta.enableIcebergCompatV2": "true"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "inCommitTimestamp-preview": {"delta.enableInCommitTimestamps-preview": "true"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "typeWidening-preview": {"delta.enableTypeWidening": "true"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
}
COLUMNS: dict[str, dict[str, Any]] = {
    "generatedColumns": {"delta.generationExpression": "1"},
    "identityColumns": {
        "delta.identity.start": 1,
        "delta.identity.step": 2,
        "delta.identity.highWaterMark": 9,
    },
    "allowColumnDefaults": {"CURRENT_DEFAULT": "7"},
    "columnMapping": {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "col-9"},
}


def declared(name: str) -> tuple[Protocol, Metadata]:
    """A table that lists the feature and uses it."""
    feature = FEATURES[name]
    kind = "variant" if name.startswith("variant") else "long"
    fields = [
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
        {"name": "id", "type": kind, "nullable": True, "metadata": COLUMNS.get(name, {})},
    ]
    if name == "columnMapping":
        fields[0]["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "p"}
    listed = frozenset({name})
    return (
        protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=listed if feature.in_reader else frozenset(),
            writer_features=listed,
        ),
        metadata(
            schema_string=json.dumps({"type": "struct", "fields": fields}),
            configuration=CONFIGURATIONS.get(name, {}),
        ),
    )


def listed_by(writer_kind: WriterKind) -> list[str]:
    return sorted(name for name, item in FEATURES.items() if writer_kind in item.writable_by)


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_a_surface_is_let_through_where_the_feature_says_so_and_nowhere_else(name: str) -> None:
    pair = declared(name)
    for writer_kind in WriterKind:
        if writer_kind in FEATURES[name].writable_by:
            assert require_write_support(*pair, writer_kind=writer_kind) is None
        else:
            with pytest.raises(UnsupportedTableFeatureError, match=f"feature {name}") as caught:
                require_write_support(*pair, writer_kind=writer_kind, operation="do it")
            assert caught.value.problem.startswith("Cannot do it: ")


def test_what_is_turned_on_gets_rows_and_its_log_is_kept() -> None:
    """Who turns a feature on can write the table without Spark, and check it, clean up and vacuum."""
    for feature in FEATURES.values():
        assert feature.may_be_enabled == (feature.writable_by >= ROWS_WITHOUT_SPARK), feature.name
        assert WriterKind.ARROW_ROWS not in feature.writable_by or feature.writable_by >= LOG_ONLY, (
            feature.name
        )
    filled = {"allowColumnDefaults", "columnMapping", "generatedColumns", "identityColumns", "typeWidening"}
    for name in filled:
        assert FEATURES[name].writable_by == ALL_WRITER_KINDS
    assert LOG_ONLY < ROWS_WITHOUT_SPARK < ALL_WRITER_KINDS


def test_the_error_says_which_surfaces_could() -> None:
    with pytest.raises(UnsupportedTableFeatureError) as caught:
        require_write_support(
            *declared("variantShredding"), writer_kind=WriterKind.SPARK_ROWS, operation="append"
        )
    assert caught.value.cause.endswith("does not support for rows from Spark (spark_jobs.write).")
    able = "restoring, cloning and converting, checkpoints, cleaning up the log"
    assert f"For such a table deltaward supports {able} and vacuum." in caught.value.fix
    unknown = protocol(min_writer_version=7, writer_features=frozenset({"future"}))
    with pytest.raises(UnsupportedTableFeatureError) as caught:
        require_write_support(unknown, metadata(), writer_kind=WriterKind.MERGE)
    assert caught.value.fix.endswith("with that engine.")


def test_features_that_bind_together_leave_what_all_of_them_allow() -> None:
    names = frozenset({"icebergCompatV2", "generatedColumns", "inCommitTimestamp-preview"})
    given = metadata(
        configuration={**CONFIGURATIONS["icebergCompatV2"], **CONFIGURATIONS["inCommitTimestamp-preview"]},
        schema_string=declared("generatedColumns")[1].schema_string,
    )
    listed = protocol(
        min_reader_version=3, min_writer_version=7, reader_features=frozenset(), writer_features=names
    )
    with pytest.raises(UnsupportedTableFeatureError) as caught:
        require_write_support(listed, given, writer_kind=WriterKind.ARROW_ROWS)
    assert caught.value.fix.endswith("For such a table deltaward supports checkpoints.")


def test_surfaces_in_words() -> None:
    assert in_words(()) == ""
    assert in_words([WriterKind.VACUUM]) == "vacuum"
    assert in_words([WriterKind.VACUUM, WriterKind.MERGE]) == "MERGE and vacuum"


@pytest.mark.parametrize("name", listed_by(WriterKind.CHECKPOINT))
def test_a_checkpoint_says_all_that_the_log_said(name: str, tmp_path: Path) -> None:
    """The commits are gone afterwards, so what the checkpoint lost would be missing."""
    log = LogBuilder(tmp_path)
    log.commit(
        *declared(name),
        add("old"),
        add("tagged", tags={"ZCUBE_ID": "a"}, clustering_provider="liquid"),
        add("numbered", base_row_id=5, default_row_commit_version=0, partition_values={"p": None}),
        DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[]}'),
    )
    log.commit(remove("old", partition_values={"p": "1"}, extended_file_metadata=True))
    before = Snapshot.load(log.store, clock=log.clock)
    files, gone = before.files.to_table(), before.tombstones(since_ms=0)
    write_checkpoint(before)
    log.remove_commits([0, 1])
    log.commit(version=2)
    after = Snapshot.load(log.store, clock=log.clock)
    assert (after.protocol, after.metadata) == (before.protocol, before.metadata)
    assert after.files.to_table().sort_by("path") == files.sort_by("path")
    assert after.tombstones(since_ms=0) == gone
    assert dict(after.domain_metadata) == dict(before.domain_metadata)


def test_a_peer_goes_on_from_our_checkpoint_of_a_table_with_change_data(tmp_path: Path) -> None:
    uri = str(tmp_path)
    rows = pa.table({"id": [1, 2, 3]})
    peer_write(uri, rows, configuration={"delta.enableChangeDataFeed": "true"})
    PeerTable(uri).delete("id = 2")
    table = DeltaTable(uri)
    table.create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    peer_write(uri, pa.table({"id": [4]}), mode="append")
    assert sorted(PeerTable(uri).to_pyarrow_table().column("id").to_pylist()) == [1, 3, 4]
    table.update_incremental()
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [1, 3, 4]
    for writer_kind in (WriterKind.SPARK_ROWS, WriterKind.MERGE):
        assert Transaction.begin(table.snapshot, operation="WRITE", writer_kind=writer_kind) is not None
    apply_rewrite(table.snapshot, plan_compaction(table.snapshot))
    assert sorted(PeerTable(uri).to_pyarrow_table().column("id").to_pylist()) == [1, 3, 4]
    assert pa.table(PeerTable(uri).load_cdf(starting_version=3).read_all()).num_rows == 0
    table.restore(1)
    assert sorted(PeerTable(uri).to_pyarrow_table().column("id").to_pylist()) == [1, 3]


def test_a_vacuum_keeps_change_data_as_long_as_removed_files(
    tmp_path: Path,
) -> None:
    uri = str(tmp_path)
    peer_write(uri, pa.table({"id": [1, 2]}), configuration={"delta.enableChangeDataFeed": "true"})
    PeerTable(uri).delete("id = 2")
    removed = [file.name for file in tmp_path.glob("*.parquet")]
    kept = {file.name for file in (tmp_path / "_change_data").iterdir()}
    assert kept
    table = DeltaTable(uri)
    assert table.vacuum(dry_run=False) == []
    changes = PeerTable(uri).load_cdf(starting_version=1, ending_version=1)
    assert pa.table(changes.read_all()).column("_change_type").to_pylist() == ["delete"]
    gone = table.vacuum(0, dry_run=False, enforce_retention=False, force=True)
    assert len(gone) == 2
    assert {path for path in gone if not path.startswith("_change_data/")} < set(removed)
    assert {path.removeprefix("_change_data/") for path in gone} & kept == kept
    assert PeerTable(uri).to_pyarrow_table().column("id").to_pylist() == [1]
