"""What a version's checksum says is compared with the log, and never needed."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import write_deltalake
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import CorruptLogError, DeltaWarning, VerificationError
from delta_core.log.checksum import parse_checksum
from delta_core.maintenance.verify.checks import verify_table
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, metadata, remove


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t").create().appends(3)


def _load(log: LogBuilder, version: int | None = None) -> Snapshot:
    return Snapshot.load(log.store, version=version, clock=log.clock)


def test_a_right_checksum_says_nothing(log: LogBuilder) -> None:
    log.checksum(_load(log))
    snapshot = _load(log)
    assert snapshot.files.num_files == 3
    assert snapshot.checksum_discrepancies == ()
    assert write_checkpoint(snapshot).num_add_files == 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"numFiles": 4}, "number of files: the checksum has 4, the log has 3"),
        ({"tableSizeBytes": 31}, "size of the table in bytes: the checksum has 31, the log has 30"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, "protocol: the checksum has"),
        ({"metadata": {"id": "other", "partitionColumns": ["p"]}}, "metadata, id: the checksum has 'other'"),
    ],
)
def test_what_differs_is_said_and_no_checkpoint_is_written(
    log: LogBuilder, changes: dict[str, object], reason: str
) -> None:
    log.checksum(_load(log), **changes)
    snapshot = _load(log)
    with pytest.warns(DeltaWarning, match=reason):
        assert snapshot.files.num_files == 3
    assert len([text for text in snapshot.checksum_discrepancies if reason in text]) == 1
    with pytest.raises(VerificationError, match=reason):
        write_checkpoint(snapshot)
    assert not list(log.log.glob("*.checkpoint.parquet"))


def test_verify_names_the_difference(log: LogBuilder) -> None:
    log.checksum(_load(log), numFiles=2)
    snapshot = _load(log)
    with pytest.warns(DeltaWarning, match="number of files"):
        report = verify_table(snapshot, sample_footers=0)
    check = next(check for check in report.checks if check.name == "checksum")
    assert not check.passed
    assert "the checksum has 2," in check.detail


def test_every_version_has_its_own(log: LogBuilder) -> None:
    for version in (1, 3):
        log.checksum(_load(log, version))
    snapshot = _load(log, 1)
    assert snapshot.files.num_files == 1
    log.commit(remove("file-1"))
    latest = snapshot.refresh()
    assert latest.version == 4
    assert latest.checksum_discrepancies == ()  # version 4 has none
    log.checksum(latest, numFiles=9)
    with pytest.warns(DeltaWarning, match="the checksum has 9,"):
        assert _load(log).files.num_files == 2
    log.commit(metadata(id="changed"))
    assert latest.refresh().files.num_files == 2


def test_our_own_commit_leaves_the_checksum_of_the_version_before_behind(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number in range(10):
        write_deltalake(table, pa.table({"id": [number]}), mode="append")
    log = LogBuilder(table)
    log.checksum(Snapshot.load(log.store))
    write_deltalake(table, pa.table({"id": [99]}), mode="append")
    assert (table / "_delta_log" / f"{10:020d}.checkpoint.parquet").exists()


COUNTS = b'{"numProtocol":1,"numMetadata":1,"tableSizeBytes":1,"numFiles":1'


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"numProtocol":1,"numMetadata":1,"tableSizeBytes":1}', "numFiles is None"),
        (b'{"numProtocol":1,"numMetadata":1,"tableSizeBytes":1,"numFiles":-1}', "numFiles is -1"),
        (COUNTS + b',"inCommitTimestampOpt":9223372036854775807}', "after the year 9999"),
        (b'{"numProtocol":2,"numMetadata":1,"tableSizeBytes":1,"numFiles":1}', "numProtocol is 2"),
        (b'{"protocol":7,"numProtocol":1,"numMetadata":1}', "protocol is not a JSON object"),
        (b'{"metadata":{},"numProtocol":1,"numMetadata":1}', "metadata.id is missing"),
    ],
)
def test_an_unreadable_one_is_passed_over(log: LogBuilder, data: bytes, reason: str) -> None:
    log.raw(f"{3:020d}.crc", data)
    snapshot = _load(log)
    with pytest.warns(DeltaWarning, match=f"0003.crc' cannot be read.*{reason}.*is ignored"):
        assert snapshot.files.num_files == 3
    with pytest.raises(CorruptLogError, match=reason):
        parse_checksum(data, path="3.crc")


def test_early_writers_gave_counts_alone(log: LogBuilder) -> None:
    data = b'{"tableSizeBytes":30,"numFiles":3,"numMetadata":1,"numProtocol":1,"numTransactions":0}'
    log.raw(f"{3:020d}.crc", data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _load(log).checksum_discrepancies == ()
