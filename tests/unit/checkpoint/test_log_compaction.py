"""Log compaction files: what some commits leave behind, read instead of them by us and by deltalake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as TheirTable

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import CommitInfo, DeletionVectorDescriptor, DomainMetadata, SetTransaction
from delta_core.checkpoint import log_compaction
from delta_core.checkpoint.log_compaction import CompactedLog, compact_log
from delta_core.errors import (
    ConfigurationError,
    StaleCommitError,
    VerificationError,
    VersionNotFoundError,
)
from delta_core.replay.tail import Tail
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import NOW_MS, LogBuilder, add, metadata, protocol, remove


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """What the protocol's example has, and more."""
    vector = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="dv", offset=1, size_in_bytes=1, cardinality=2
    )
    log = LogBuilder(tmp_path / "t")
    log.commit(protocol(), metadata(), add("f1"), add("g"), DomainMetadata(domain="d", configuration="{}"))
    log.commit(CommitInfo(operation="WRITE"), add("f2"), remove("f1", base_row_id=4))
    log.commit(add("f3"), add("f4"), SetTransaction(app_id="app", version=4389))
    log.commit(
        remove("f3"),
        SetTransaction(app_id="app", version=4390),
        DomainMetadata(domain="d", configuration="", removed=True),
        metadata(name="renamed"),
        remove("g"),
        add("g", deletion_vector=vector),
    )
    log.appends(1)
    return log


def _load(log: LogBuilder, version: int | None = None) -> Snapshot:
    return Snapshot.load(log.store, version=version, clock=log.clock)


def _lines(log: LogBuilder, name: str) -> list[tuple[str, dict[str, Any]]]:
    lines = (log.log / name).read_text().splitlines()
    return [next(iter(json.loads(line).items())) for line in lines]


def _state(snapshot: Snapshot) -> tuple[object, ...]:
    return (
        snapshot.files.to_table().sort_by([("path", "ascending"), ("size_bytes", "ascending")]),
        snapshot.tombstones(since_ms=0).sort_by("path"),
        snapshot.transactions,
        snapshot.domain_metadata,
        snapshot.metadata,
        snapshot.protocol,
    )


def test_it_keeps_what_the_commits_leave_behind(log: LogBuilder) -> None:
    done = compact_log(_load(log), first=1, last=3)
    name = f"{1:020d}.{3:020d}.compacted.json"
    assert done == CompactedLog(path=f"_delta_log/{name}", first=1, last=3, num_actions=9)
    found = _lines(log, name)
    assert [(kind, fields.get("path") or fields.get("version")) for kind, fields in found] == [
        ("metaData", None),
        ("txn", 4390),
        ("domainMetadata", None),
        ("add", "f2"),
        ("add", "f4"),
        ("add", "g"),
        ("remove", "f1"),
        ("remove", "f3"),
        ("remove", "g"),
    ]
    assert found[2][1] == {"domain": "d", "configuration": "", "removed": True}
    assert not any(fields["dataChange"] for kind, fields in found if kind in ("add", "remove"))
    assert found[6][1]["baseRowId"] == 4


@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 3), (1, 2), (2, 3), (1, 4), (0, 4)])
def test_every_range_reads_equal(log: LogBuilder, first: int, last: int) -> None:
    before = {version: _state(_load(log, version)) for version in range(5)}
    theirs = sorted(TheirTable(str(log.root)).file_uris())
    compact_log(_load(log), first=first, last=last)
    segment = _load(log, last).segment
    assert [(item.version, item.end_version) for item in segment.compactions] == [(first, last)]
    for version, state in before.items():
        assert _state(_load(log, version)) == state
    assert sorted(TheirTable(str(log.root)).file_uris()) == theirs


def test_one_that_is_there_stays(log: LogBuilder) -> None:
    path = log.raw(f"{1:020d}.{3:020d}.compacted.json", b"somebody's")
    found = compact_log(_load(log, 3), first=1, last=3)
    assert found is not None
    assert found.num_actions is None
    assert path.read_bytes() == b"somebody's"


def test_commits_that_change_nothing_get_none(log: LogBuilder) -> None:
    for _ in ("VACUUM START", "VACUUM END"):
        log.commit(CommitInfo(operation="VACUUM"))
    assert compact_log(_load(log), first=5, last=6) is None
    assert not list(log.log.glob("*.compacted.json"))


@pytest.mark.parametrize(("first", "last"), [(1, 1), (2, 1), (-1, 2), (1, 5)])
def test_ranges_that_are_none(log: LogBuilder, first: int, last: int) -> None:
    with pytest.raises(ConfigurationError, match="cannot be compacted"):
        compact_log(_load(log), first=first, last=last)


def test_a_commit_that_is_gone(log: LogBuilder) -> None:
    snapshot = _load(log)
    log.remove_commits([0])
    with pytest.raises(VersionNotFoundError, match="Version 0 "):
        compact_log(snapshot, first=0, last=2)


def test_a_table_made_anew_gets_no_compaction_of_the_old_one(log: LogBuilder) -> None:
    old = _load(log)
    log.commit(add("other"), version=4, time_ms=NOW_MS + 10**9)
    with pytest.raises(StaleCommitError):
        compact_log(old, first=0, last=4)
    assert not list(log.log.glob("*.compacted.json"))


def test_what_would_not_stand_for_the_commits_is_not_written(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = log_compaction._actions
    monkeypatch.setattr(log_compaction, "_actions", lambda tail: list(real(_without_removes(tail))))
    with pytest.raises(VerificationError, match="would not be equivalent to its commits"):
        compact_log(_load(log), first=1, last=3)
    assert not list(log.log.glob("*.compacted.json"))


def _without_removes(tail: Tail) -> Tail:
    return Tail(
        metadata=tail.metadata,
        transactions=tail.transactions,
        domain_metadata=tail.domain_metadata,
        adds=tail.adds,
    )


def test_every_so_many_commits_when_the_table_asks_for_it(tmp_path: Path) -> None:
    table = tmp_path / "t"
    configuration = {"deltaward.logCompactionInterval": "4", "delta.checkpointInterval": "7"}
    for number in range(9):
        write_deltalake(table, pa.table({"id": [number]}), mode="append", configuration=configuration)
    names = sorted(path.name for path in (table / "_delta_log").glob("*.compacted.json"))
    # Version 7 has a checkpoint.
    assert names == [f"{0:020d}.{3:020d}.compacted.json"]
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == list(range(9))
    plain = tmp_path / "plain"
    for number in range(5):
        write_deltalake(plain, pa.table({"id": [number]}), mode="append")
    assert not list((plain / "_delta_log").glob("*.compacted.json"))
