"""Row tracking turned on for a table that has rows: every row gets an id, and nothing else happens."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from delta_core import CommitProperties, DeltaTable
from delta_core.actions import Metadata, Protocol
from delta_core.errors import (
    ConcurrentDeleteReadError,
    ConfigurationError,
    MissingDataFileError,
    UnsupportedTableFeatureError,
)
from delta_core.maintenance.backfill import enable_row_tracking
from delta_core.run import Run
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_result import raise_for_result
from delta_core.transaction.file_actions import remove_actions
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.row_ids import DOMAIN, watermark_of
from delta_core.transaction.transaction import Transaction
from tests.support.deletion_vectors import inline_deletion_vector
from tests.support.writable_features import let_write


@pytest.fixture(autouse=True)
def _writable(monkeypatch: pytest.MonkeyPatch) -> None:
    let_write(monkeypatch, "rowTracking")


def appended(root: Path, *, commits: int = 7, configuration: dict[str, str] | None = None) -> Path:
    for number in range(commits):
        rows = pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())})
        deltalake.write_deltalake(
            str(root), rows, mode="append", configuration=configuration if number == 0 else None
        )
    return root


def snapshot_of(root: Path) -> Snapshot:
    return Snapshot.load(LocalLogStore(root))


def ids(root: Path) -> dict[int, tuple[int, int]]:
    found = DeltaTable(root).to_pyarrow_table(row_ids=True).to_pydict()
    return dict(
        zip(found["id"], zip(found["_row_id"], found["_row_commit_version"], strict=True), strict=True)
    )


def test_every_row_gets_an_id_in_commits_of_bounded_size(tmp_path: Path) -> None:
    appended(tmp_path, configuration={"delta.enableChangeDataFeed": "true"})
    table = DeltaTable(tmp_path)
    result = table.optimize.enable_row_tracking(files_per_commit=3)
    assert (result.files, result.commits, result.version) == (7, 3, table.version())
    assert table.version() == 6 + 1 + 3 + 1
    found = ids(tmp_path)
    assert sorted(row_id for row_id, _ in found.values()) == list(range(70))
    assert {version for _, version in found.values()} == {8, 9, 10}
    domain = snapshot_of(tmp_path).domain(DOMAIN)
    assert domain is not None
    assert watermark_of(domain) == 69
    operations = [entry.commit_info.operation for entry in history(snapshot_of(tmp_path), limit=5)]
    assert operations == ["SET TBLPROPERTIES", *["ROW TRACKING BACKFILL"] * 3, "ADD FEATURE"]
    for version in (8, 9, 10):
        lines = (tmp_path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
        adds = [add for line in lines if (add := json.loads(line).get("add"))]
        assert 1 <= len(adds) <= 3
        assert not any(add["dataChange"] for add in adds)
    assert DeltaTable(tmp_path).load_cdf(starting_version=7).read_all().num_rows == 0
    peer = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()
    assert sorted(peer["id"].to_pylist()) == list(range(70))


def test_a_second_call_does_nothing_and_one_after_a_stop_goes_on(tmp_path: Path) -> None:
    appended(tmp_path)

    class Stops:
        seen = 0

        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is not CommitPhase.BEFORE_PUT:
                return
            Stops.seen += 1
            if Stops.seen == 4:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        enable_row_tracking(snapshot_of(tmp_path), files_per_commit=2, run=Run(observer=Stops()))
    numbered = snapshot_of(tmp_path).files.to_table(["base_row_id"])["base_row_id"].drop_null()
    assert len(numbered) == 4
    result = enable_row_tracking(snapshot_of(tmp_path), files_per_commit=2)
    assert (result.files, result.commits) == (3, 2)
    before = ids(tmp_path)
    assert len({row_id for row_id, _ in before.values()}) == 70
    again = enable_row_tracking(snapshot_of(tmp_path))
    assert again.committed is None
    assert again.version is None
    assert ids(tmp_path) == before


def test_a_file_that_is_removed_meanwhile_stays_removed(tmp_path: Path) -> None:
    appended(tmp_path)
    removing = snapshot_of(tmp_path)

    class Removes:
        seen = 0

        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is not CommitPhase.BEFORE_PUT:
                return
            Removes.seen += 1
            if Removes.seen != 2:
                return
            latest = removing.refresh()
            gone = latest.files.to_table().slice(0, 1)
            transaction = Transaction.begin(latest, operation="DELETE", writer_kind=WriterKind.REWRITE)
            raise_for_result(transaction.add(*remove_actions(gone, deletion_timestamp_ms=1)).commit())

    result = enable_row_tracking(removing, run=Run(observer=Removes()))
    assert (result.files, result.commits) == (6, 1)
    assert len(ids(tmp_path)) == 60


def test_a_vacuum_that_begins_meanwhile_is_only_another_try(tmp_path: Path) -> None:
    appended(tmp_path, commits=2)

    class Vacuums:
        seen = 0

        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is not CommitPhase.BEFORE_PUT:
                return
            Vacuums.seen += 1
            if Vacuums.seen != 2:
                return
            transaction = Transaction.begin(
                snapshot_of(tmp_path),
                operation="VACUUM START",
                writer_kind=WriterKind.VACUUM,
                operation_parameters={"specifiedRetentionMillis": 0},
            )
            raise_for_result(transaction.commit())

    result = enable_row_tracking(snapshot_of(tmp_path), run=Run(observer=Vacuums()))
    assert Vacuums.seen == 4, "the feature, the files twice, the property"
    assert (result.files, result.commits) == (2, 1)
    assert len(ids(tmp_path)) == 20


def test_writers_that_never_let_it_finish_are_an_error(tmp_path: Path) -> None:
    appended(tmp_path, commits=40)

    class RemovesAlways:
        seen = 0

        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is not CommitPhase.BEFORE_PUT:
                return
            RemovesAlways.seen += 1
            latest = snapshot_of(tmp_path)
            gone = latest.files.to_table().slice(0, 1)
            if RemovesAlways.seen == 1:
                return
            transaction = Transaction.begin(latest, operation="DELETE", writer_kind=WriterKind.REWRITE)
            raise_for_result(transaction.add(*remove_actions(gone, deletion_timestamp_ms=1)).commit())

    with pytest.raises(ConcurrentDeleteReadError):
        enable_row_tracking(snapshot_of(tmp_path), run=Run(observer=RemovesAlways()))


def test_rows_are_counted_where_statistics_do_not_say(tmp_path: Path) -> None:
    appended(tmp_path, commits=3)
    stats = ['{"minValues":{"id":0.10000000000000000001}}', None, '{"numRecords":"ten"}']
    for version, text in enumerate(stats):
        log = tmp_path / "_delta_log" / f"{version:020d}.json"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if "add" in line:
                line["add"].pop("stats", None)
                if text is not None:
                    line["add"]["stats"] = text
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    enable_row_tracking(snapshot_of(tmp_path))
    assert sorted(row_id for row_id, _ in ids(tmp_path).values()) == list(range(30))
    found = snapshot_of(tmp_path).files.to_table(["stats"])["stats"].to_pylist()
    assert sorted(found) == [
        '{"numRecords":10,"minValues":{"id":0.10000000000000000001}}',
        '{"numRecords":10}',
        '{"numRecords":10}',
    ]


def test_a_file_that_cannot_be_counted_stops_it(tmp_path: Path) -> None:
    appended(tmp_path, commits=1)
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    next(tmp_path.glob("*.parquet")).unlink()
    with pytest.raises(MissingDataFileError):
        enable_row_tracking(snapshot_of(tmp_path))


def test_deletion_vectors_and_tags_stay_and_positions_count(tmp_path: Path) -> None:
    appended(tmp_path, commits=1)
    before = snapshot_of(tmp_path)
    listed = frozenset({"deletionVectors"})
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    (line,) = [
        add
        for text in (tmp_path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
        if (add := json.loads(text).get("add"))
    ]
    dv = inline_deletion_vector([0, 4])
    line["deletionVector"] = {
        "storageType": dv.storage_type,
        "pathOrInlineDv": dv.path_or_inline_dv,
        "sizeInBytes": dv.size_in_bytes,
        "cardinality": dv.cardinality,
    }
    line["tags"] = {"a": "b"}
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted(listed),
        "writerFeatures": sorted(listed),
    }
    remove = {"path": line["path"], "dataChange": True, "deletionTimestamp": 1}
    entries = [{"protocol": protocol}, {"remove": remove}, {"add": line}]
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert before.version == 0
    enable_row_tracking(snapshot_of(tmp_path))
    assert ids(tmp_path) == {n: (n, 3) for n in range(10) if n not in (0, 4)}
    row = snapshot_of(tmp_path).files.to_table().to_pylist()[0]
    assert dict(row["tags"]) == {"a": "b"}
    assert row["deletion_vector"]["path_or_inline_dv"] == dv.path_or_inline_dv


def test_a_suspension_ends_and_the_key_goes_with_the_last_commit(tmp_path: Path) -> None:
    appended(tmp_path, commits=2)
    latest = snapshot_of(tmp_path)
    features = frozenset({"rowTracking", "domainMetadata"})
    protocol = Protocol(min_reader_version=1, min_writer_version=7, writer_features=features)
    configuration = {**latest.metadata.configuration, "delta.rowTrackingSuspended": "true"}
    metadata = Metadata(
        id=latest.metadata.id, schema_string=latest.metadata.schema_string, configuration=configuration
    )
    transaction = Transaction.begin(latest, operation="SET", writer_kind=WriterKind.REWRITE)
    raise_for_result(transaction.add(protocol, metadata).commit())
    result = enable_row_tracking(snapshot_of(tmp_path), run=Run(commit=CommitProperties(txn=("job", 3))))
    after = snapshot_of(tmp_path)
    assert result.version == after.version
    assert "delta.rowTrackingSuspended" not in after.metadata.configuration
    assert after.transactions["job"].version == 3
    assert len(ids(tmp_path)) == 20


def test_what_makes_no_sense_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    appended(tmp_path, commits=1)
    with pytest.raises(ConfigurationError):
        enable_row_tracking(snapshot_of(tmp_path), files_per_commit=0)
    monkeypatch.undo()
    version = snapshot_of(tmp_path).version
    from delta_core.table_features.feature import FEATURES

    if not FEATURES["rowTracking"].may_be_enabled:
        with pytest.raises(UnsupportedTableFeatureError, match="rowTracking"):
            enable_row_tracking(snapshot_of(tmp_path))
        assert snapshot_of(tmp_path).version == version
