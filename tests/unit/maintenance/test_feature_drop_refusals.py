"""What is not dropped, and who commits while a feature is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    FeatureRemovalError,
    MaxCommitAttemptsError,
    SchemaEvolutionError,
    UnsupportedTableFeatureError,
)
from delta_core.maintenance.feature_drop import apply, drop_feature, steps
from delta_core.run import Run
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.upgrade import supported_features
from delta_core.transaction.observer import CommitPhase
from tests.support.dropped_tables import (
    by_peer,
    ids,
    make,
    rows,
    snapshot_of,
)
from tests.support.log_builder import LogBuilder, metadata, protocol


class TestRefusals:
    """Before anything is committed."""

    def refused(self, table: DeltaTable, name: str, *words: str, **options: Any) -> None:
        version = table.version()
        with pytest.raises(FeatureRemovalError) as caught:
            table.alter.drop_feature(name, **options)
        said = str(caught.value)
        assert all(word in said for word in words), said
        assert DeltaTable(table.table_uri).version() == version

    def test_unknown_or_not_there(self, tmp_path: Path) -> None:
        table = make(tmp_path)
        self.refused(table, "ofTomorrow", "does not support the feature ofTomorrow")
        self.refused(table, "columnMapping", "does not support")
        self.refused(table, "", "does not support")

    def test_no_rule(self, tmp_path: Path) -> None:
        log = LogBuilder(tmp_path / "t")
        listed = frozenset({"variantShredding"})
        log.commit(
            protocol(
                min_reader_version=3, min_writer_version=7, reader_features=listed, writer_features=listed
            ),
            metadata(),
        )
        self.refused(DeltaTable(tmp_path / "t"), "variantShredding", "The log cannot prove")

    def test_another_feature_requires_it(self, tmp_path: Path) -> None:
        table = make(tmp_path, enableRowTracking="true")
        self.refused(table, "domainMetadata", "rowTracking requires it", "Drop rowTracking first")

    def test_what_is_the_users_is_named_with_its_remedy(self, tmp_path: Path) -> None:
        table = make(tmp_path)
        table.alter.add_constraint({"positive": "id >= 0"})
        self.refused(table, "checkConstraints", "constraint positive", "Drop the constraint positive")
        table.alter.set_domain_metadata("team", "x")
        self.refused(table, "domainMetadata", "metadata domain team")
        table.alter.set_properties({"delta.appendOnly": "true"})
        self.refused(table, "appendOnly", "Set delta.appendOnly to false")

    def test_names_that_only_a_mapping_allows(self, tmp_path: Path) -> None:
        table = make(tmp_path, columnMapping__mode="name")
        table.alter.rename_column("t", "the text")
        version = table.version()
        with pytest.raises(SchemaEvolutionError, match="the text"):
            table.alter.drop_feature("columnMapping")
        assert DeltaTable(tmp_path).version() == version

    def test_a_type_that_needs_it(self, tmp_path: Path) -> None:
        at = pa.table({"at": pa.array([0], pa.timestamp("us"))})
        write_deltalake(tmp_path, at, configuration={"delta.feature.timestampNtz": "supported"})
        self.refused(DeltaTable(tmp_path), "timestampNtz", "timestamp_ntz")

    def test_nothing_to_truncate(self, tmp_path: Path) -> None:
        table = make(tmp_path, enableChangeDataFeed="true")
        with pytest.raises(ConfigurationError, match="no history to truncate"):
            table.alter.drop_feature("changeDataFeed", truncate_history=True)
        assert "changeDataFeed" in supported_features(table.protocol())

    def test_a_table_that_is_not_written_here(self, tmp_path: Path) -> None:
        log = LogBuilder(tmp_path / "t")
        writers = frozenset({"ofTomorrow", "vacuumProtocolCheck"})
        readers = frozenset({"vacuumProtocolCheck"})
        log.commit(
            protocol(
                min_reader_version=3, min_writer_version=7, reader_features=readers, writer_features=writers
            ),
            metadata(),
        )
        with pytest.raises(UnsupportedTableFeatureError, match="ofTomorrow"):
            DeltaTable(tmp_path / "t").alter.drop_feature("vacuumProtocolCheck")

    def test_no_commit_properties(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError):
            make(tmp_path).alter.drop_feature("appendOnly", commit_properties={})  # type: ignore[arg-type]


class _Interfering:
    """Lets another writer commit whenever a drop is about to write its last commit."""

    def __init__(self, path: Path, *, times: int, sql: str, last_step: str = "") -> None:
        """Interfere after the preparation's last step, an operation's name; where there is none, at once."""
        self.path, self.left, self.sql, self.last_step = path, times, sql, last_step

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        other = DeltaTable(self.path)
        done = {entry.commit_info.operation for entry in other.history()} if self.last_step else {""}
        prepared = (
            "delta.enableDeletionVectors" not in other.metadata().configuration and self.last_step in done
        )
        if phase is not CommitPhase.BEFORE_PUT or not self.left or not prepared:
            return
        if other.snapshot.files.has_deletion_vectors:
            return
        self.left -= 1
        if self.sql == "append":
            write_deltalake(self.path, rows(500 + self.left, 1), mode="append")
        else:
            other.alter.set_properties({"delta.enableDeletionVectors": "true"})
            DeltaTable(self.path).delete(f"id = {10 + self.left}")


@pytest.mark.parametrize("sql", ["append", "delete"])
def test_who_commits_meanwhile_is_looked_at(tmp_path: Path, sql: str) -> None:
    make(tmp_path, enableDeletionVectors="true")
    observer = _Interfering(tmp_path, times=2, sql=sql, last_step="Deletion Vector Tombstones")
    drop_feature(snapshot_of(tmp_path), "deletionVectors", run=Run(observer=observer))
    assert not observer.left
    after = snapshot_of(tmp_path)
    assert not after.files.has_deletion_vectors
    assert "deletionVectors" not in supported_features(after.protocol)
    assert after.metadata.configuration[CHECKPOINT_PROTECTION] == str(after.version)
    assert by_peer(tmp_path) == ids(tmp_path)
    expected = {*range(30)} - {3}
    assert set(ids(tmp_path)) == (expected | {500, 501} if sql == "append" else expected - {10, 11})


def test_a_preparation_gives_up_where_others_always_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, columnMapping__mode="name")
    monkeypatch.setattr(steps, "MOST_CONFLICTS", 2)
    monkeypatch.setattr(apply, "_MOST_CONFLICTS", 0)
    tried = []

    class Appending:
        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is CommitPhase.BEFORE_PUT:
                tried.append(version)
                write_deltalake(tmp_path, rows(500 + 10 * len(tried)), mode="append")

    with pytest.raises(ConcurrentModificationError):
        drop_feature(snapshot_of(tmp_path), "columnMapping", run=Run(observer=Appending()))
    assert len(tried) == 3
    assert "columnMapping" in supported_features(snapshot_of(tmp_path).protocol)
    live = set(snapshot_of(tmp_path).files.to_table(["path"])["path"].to_pylist())
    found = {file.name for file in tmp_path.glob("*.parquet")}
    assert len(found - live) <= 1, "what was written in vain is gone; the rest is an old version's"


def test_it_gives_up_where_others_always_win(tmp_path: Path) -> None:
    make(tmp_path, feature__timestampNtz="supported")
    observer = _Interfering(tmp_path, times=1000, sql="append")
    with pytest.raises((MaxCommitAttemptsError, ConcurrentModificationError)):
        drop_feature(snapshot_of(tmp_path), "timestampNtz", run=Run(observer=observer))
    assert "timestampNtz" in supported_features(snapshot_of(tmp_path).protocol)
