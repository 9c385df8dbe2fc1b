"""Version checksums: exact for their version, never replaced, read by us, and none that costs a commit."""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as TheirTable

from delta_core import DeltaTable, clone_table, convert_to_deltalake, write_deltalake
from delta_core.actions import (
    Action,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    SetTransaction,
)
from delta_core.checkpoint import auxiliary_files
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.checkpoint.version_checksum import checksum_fields, write_version_checksum
from delta_core.errors import CorruptLogError, DeltaWarning, StaleCommitError
from delta_core.log.checksum import parse_checksum
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.table_properties import CHECKPOINT_INTERVAL
from tests.support.log_builder import NOW_MS, LogBuilder, add, metadata, protocol, remove

ALWAYS = {"deltaward.versionChecksum": "always"}


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    log = LogBuilder(tmp_path / "t")
    log.commit(protocol(), metadata(), *(add(f"f{n}", size_bytes=8191 + n) for n in range(3)))
    log.commit(SetTransaction(app_id="app", version=7, last_updated_ms=5), remove("f0"))
    log.commit(add("large", size_bytes=1 << 40, partition_values={"p": None}, stats=None, tags={"a": "b"}))
    return log


def _load(log: LogBuilder, version: int | None = None) -> Snapshot:
    return Snapshot.load(log.store, version=version, clock=log.clock)


def _fields(log: LogBuilder, version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((log.log / f"{version:020d}.crc").read_bytes())
    return found


def test_all_of_it(log: LogBuilder) -> None:
    assert write_version_checksum(_load(log), txn_id="t-1") == f"_delta_log/{2:020d}.crc"
    found = _fields(log, 2)
    histogram = found.pop("fileSizeHistogram")
    files = {file["path"]: file for file in found.pop("allFiles")}
    assert found == {
        "txnId": "t-1",
        "tableSizeBytes": 8192 + 8193 + (1 << 40),
        "numFiles": 3,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [{"appId": "app", "version": 7, "lastUpdated": 5}],
        "domainMetadata": [],
        "metadata": json.loads((log.log / f"{0:020d}.json").read_text().splitlines()[1])["metaData"],
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    }
    bins = dict(zip(histogram["sortedBinBoundaries"], histogram["fileCounts"], strict=True))
    assert {start: count for start, count in bins.items() if count} == {8192: 2, 256 << 30: 1}
    assert (len(bins), min(bins), sorted(bins)) == (95, 0, list(bins))
    assert sum(histogram["totalBytes"]) == found["tableSizeBytes"]
    assert files["large"] == {
        "path": "large",
        "partitionValues": {"p": None},
        "size": 1 << 40,
        "modificationTime": NOW_MS,
        "dataChange": False,
        "tags": {"a": "b"},
    }
    assert set(files) == {"f1", "f2", "large"}
    assert files["f1"]["stats"] == '{"numRecords":1}'


def test_it_is_read_and_agrees_with_the_log(log: LogBuilder) -> None:
    for version in range(3):
        write_version_checksum(_load(log, version))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for version in range(3):
            assert _load(log, version).checksum_discrepancies == ()
        write_checkpoint(_load(log))
        assert TheirTable(str(log.root)).version() == 2


def test_one_that_is_there_stays(log: LogBuilder) -> None:
    path = log.raw(f"{2:020d}.crc", b"somebody's")
    with pytest.warns(DeltaWarning, match="is ignored"):
        assert write_version_checksum(_load(log)) is None
    assert path.read_bytes() == b"somebody's"


def test_long_lists_are_left_out(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).create(*(add(f"f{n}") for n in range(51)))
    log.commit(*(SetTransaction(app_id=f"a{n}", version=1) for n in range(101)))
    fields = checksum_fields(_load(log))
    assert "allFiles" not in fields
    assert "setTransactions" not in fields
    assert fields["domainMetadata"] == []
    log.commit(remove("f0"))
    assert len(checksum_fields(_load(log))["allFiles"]) == 50


def test_deletion_vectors_are_counted(tmp_path: Path) -> None:
    features = frozenset({"deletionVectors", "domainMetadata"})
    log = LogBuilder(tmp_path)

    def deleted(rows: int) -> Action:
        vector = DeletionVectorDescriptor(
            storage_type="u", path_or_inline_dv="dv", offset=1, size_in_bytes=9, cardinality=rows
        )
        return add(f"f{rows}", deletion_vector=vector)

    log.commit(
        protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=features - {"domainMetadata"},
            writer_features=features,
        ),
        metadata(),
        DomainMetadata(domain="d", configuration="{}"),
        DomainMetadata(domain="gone", configuration="", removed=True),
        add("whole"),
        *(deleted(rows) for rows in (1, 9, 10, 99_999, 2**31 - 2, 2**31 - 1)),
    )
    fields = checksum_fields(_load(log))
    assert fields["numDeletionVectorsOpt"] == 6
    assert fields["numDeletedRecordsOpt"] == 20 + 99_999 + 2**32 - 3
    counts = fields["deletedRecordCountsHistogramOpt"]["deletedRecordCounts"]
    assert counts == [1, 2, 1, 0, 0, 1, 0, 0, 1, 1]
    assert fields["domainMetadata"] == [{"domain": "d", "configuration": "{}", "removed": False}]
    assert "offset" in fields["allFiles"][1]["deletionVector"]
    parse_checksum(json.dumps(fields).encode(), path="0.crc")


def test_in_commit_times_are_the_commits_own(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    features = frozenset({"inCommitTimestamp"})
    log.commit(
        CommitInfo(in_commit_timestamp_ms=77),
        protocol(min_writer_version=7, writer_features=features),
        metadata(configuration={"delta.enableInCommitTimestamps": "true"}),
    )
    assert checksum_fields(_load(log))["inCommitTimestampOpt"] == 77
    log.commit(CommitInfo())
    with pytest.raises(CorruptLogError, match="has no commit time"):
        checksum_fields(_load(log))


def test_a_table_made_anew_gets_no_checksum_of_the_old_one(log: LogBuilder) -> None:
    old = _load(log)
    assert old.files.num_files == 3
    log.commit(add("other"), version=2, time_ms=NOW_MS + 10**9)
    with pytest.raises(StaleCommitError):
        write_version_checksum(old)
    assert not list(log.log.glob("*.crc"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"setTransactions": [{"appId": "app", "version": 8}]},
            "'app': the checksum has 8, the log has 7",
        ),
        (
            {"setTransactions": [{"appId": "new", "version": 1}]},
            "'new': the checksum has 1, the log has None",
        ),
        (
            {"domainMetadata": [{"domain": "d", "configuration": "x", "removed": False}]},
            "domain 'd': the checksum has 'x', the log has None",
        ),
    ],
)
def test_what_else_it_says_is_held_against_the_log(
    log: LogBuilder, changes: dict[str, object], reason: str
) -> None:
    log.checksum(_load(log), **changes)
    with pytest.warns(DeltaWarning, match=reason):
        assert len(_load(log).checksum_discrepancies) == 1


def test_an_expired_transaction_may_be_missing(log: LogBuilder) -> None:
    log.checksum(_load(log), setTransactions=[], domainMetadata=[])
    assert _load(log).checksum_discrepancies == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fileSizeHistogram": {"fileCounts": [3]}}, "totalBytes is not a list of counts"),
        (
            {
                "fileSizeHistogram": {
                    "sortedBinBoundaries": [0],
                    "fileCounts": [2],
                    "totalBytes": [8192 + 8193 + (1 << 40)],
                }
            },
            "fileCounts adds up to 2, expected 3",
        ),
        (
            {
                "fileSizeHistogram": {
                    "sortedBinBoundaries": [0],
                    "fileCounts": [1, 2],
                    "totalBytes": [8192 + 8193 + (1 << 40)],
                }
            },
            "have different lengths",
        ),
        ({"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [1]}}, "adds up to 1, expected 3"),
        ({"numDeletionVectorsOpt": 4}, "numDeletionVectorsOpt is 4, and there are 3 files"),
        ({"numDeletedRecordsOpt": -1}, "numDeletedRecordsOpt is -1"),
        ({"allFiles": []}, "allFiles lists 0 files of 0 bytes"),
        ({"allFiles": [{"path": "x"}]}, "allFiles is invalid: size is missing"),
        ({"allFiles": "all"}, "allFiles is not a list of actions"),
        ({"setTransactions": [{"appId": "a", "version": "1"}]}, "setTransactions is invalid: version is '1'"),
        ({"setTransactions": [{"appId": "a", "version": 1}] * 2}, "same appId twice"),
        ({"inCommitTimestampOpt": "now"}, "inCommitTimestampOpt is 'now'"),
    ],
)
def test_one_that_contradicts_itself_is_passed_over(
    log: LogBuilder, changes: dict[str, object], reason: str
) -> None:
    path = log.checksum(_load(log), **changes)
    with pytest.raises(CorruptLogError, match=reason):
        parse_checksum(path.read_bytes(), path="2.crc")
    with pytest.warns(DeltaWarning, match="is ignored"):
        assert _load(log).files.num_files == 3


# ---------------------------------------------------------------- after commits


def _names(table: Path) -> list[str]:
    return sorted(path.name[17:] for path in (table / "_delta_log").glob("*.crc"))


def test_the_policy_decides(tmp_path: Path) -> None:
    for policy, written in (("always", ["000.crc", "001.crc"]), ("never", []), (None, [])):
        table = tmp_path / f"t-{policy}"
        configuration = {} if policy is None else {"deltaward.versionChecksum": policy}
        for number in range(2):
            write_deltalake(table, pa.table({"id": [number]}), mode="append", configuration=configuration)
        assert _names(table) == written, policy
    log = LogBuilder(tmp_path / "t-always")
    assert _fields(log, 1)["numFiles"] == 2
    commit = json.loads((log.log / f"{1:020d}.json").read_text().splitlines()[0])
    assert _fields(log, 1)["txnId"] == commit["commitInfo"]["txnId"]


def test_where_the_files_are_known_it_may_be_written_always(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number in range(2):
        write_deltalake(
            table,
            pa.table({"id": [number]}),
            mode="overwrite",
            configuration={"deltaward.versionChecksum": "known"},
        )
    assert _names(table) == ["001.crc"], "who overwrites has read the files"
    assert DeltaTable(table).snapshot.checksum_discrepancies == ()


def test_each_checkpoint_has_one_by_default(tmp_path: Path) -> None:
    for number in range(6):
        write_deltalake(
            tmp_path,
            pa.table({"id": [number]}),
            mode="append",
            configuration={"delta.checkpointInterval": "2"},
        )
    assert _names(tmp_path) == ["002.crc", "004.crc"]
    assert DeltaTable(tmp_path, version=4).snapshot.checksum_discrepancies == ()


def test_an_expired_transaction_contradicts_nothing(log: LogBuilder) -> None:
    log.commit(metadata(configuration={"delta.setTransactionRetentionDuration": "interval 1 day"}))
    snapshot = _load(log)
    fields = checksum_fields(snapshot)
    assert fields["setTransactions"] == []
    write_checkpoint(snapshot)
    log.remove_commits(range(3))
    listed = {"appId": "app", "version": 7, "lastUpdated": 5}
    log.checksum(snapshot, setTransactions=[listed])
    assert (_load(log).transactions, _load(log).checksum_discrepancies) == ({}, ())
    log.checksum(snapshot, setTransactions=[{"appId": "app", "version": 7}])
    with pytest.warns(DeltaWarning, match="'app': the checksum has 7"):
        assert _load(log).files.num_files == 3


def test_a_later_snapshot_gives_none(log: LogBuilder, caplog: pytest.LogCaptureFixture) -> None:
    log.commit(metadata(configuration=ALWAYS))
    auxiliary_files.write_auxiliary_files(_load(log), committed_version=2, txn_id="t", with_checkpoint=False)
    assert not list(log.log.glob("*.crc"))
    auxiliary_files.write_auxiliary_files(_load(log), committed_version=3, txn_id="t", with_checkpoint=False)
    assert _fields(log, 3)["txnId"] == "t"
    assert caplog.records == []


def test_a_failure_is_only_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    messages: list[str] = []
    monkeypatch.setattr(
        logging.getLogger(auxiliary_files.__name__), "warning", lambda text, **_: messages.append(text)
    )
    monkeypatch.setattr(auxiliary_files, "write_version_checksum", fail)
    monkeypatch.setattr(auxiliary_files, "compact_log", fail)
    configuration = {**ALWAYS, "deltaward.logCompactionInterval": "2"}
    for number in range(2):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append", configuration=configuration)
    assert DeltaTable(tmp_path).version() == 1
    assert messages == ["version checksum after commit failed"] * 2 + ["log compaction after commit failed"]


def test_an_interval_that_cannot_be_used_costs_no_checksum(tmp_path: Path) -> None:
    """The checkpoint comes at the default interval, and its checksum with it."""
    write_deltalake(tmp_path, pa.table({"id": [0]}))
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    empty, unusable = '"configuration":{', '"configuration":{"delta.checkpointInterval":"often"'
    log.write_text(log.read_text().replace(empty, unusable, 1))
    due = [CHECKPOINT_INTERVAL.default, 2 * CHECKPOINT_INTERVAL.default]
    for number in range(due[-1]):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    for suffix in (".crc", ".parquet"):
        assert sorted(int(path.name[:20]) for path in log.parent.glob(f"*{suffix}")) == due


def test_a_policy_that_is_none_costs_no_commit(tmp_path: Path) -> None:
    """No surface of ours sets one; another writer may have."""
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = {
                "deltaward.versionChecksum": "sometimes",
                "deltaward.logCompactionInterval": "1",
            }
    log.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
    assert DeltaTable(tmp_path).version() == 1
    assert _names(tmp_path) == []


def test_every_way_to_make_or_change_a_table_writes_one(tmp_path: Path) -> None:
    """PROTOCOL.md, "Version Checksum File": one for each commit, those that make a table among them."""
    made, rows = tmp_path / "made", pa.table({"id": [1, 2]})
    table = DeltaTable.create(made, rows.schema, configuration=ALWAYS)
    write_deltalake(table, rows, mode="append")
    table.optimize.enable_row_tracking()
    landed = tmp_path / "landed"
    landed.mkdir()
    pq.write_table(rows, landed / "rows.parquet")
    convert_to_deltalake(landed, configuration=ALWAYS)
    clone_table(made, tmp_path / "cloned")
    for path in (made, landed, tmp_path / "cloned"):
        versions = range(DeltaTable(path).version() + 1)
        found = sorted(file.name for file in (path / "_delta_log").glob("*.crc"))
        assert found == [f"{version:020d}.crc" for version in versions], path.name
