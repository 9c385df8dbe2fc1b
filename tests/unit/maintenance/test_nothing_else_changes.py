"""Every verb of maintenance, over tables with features: what is seen of them stays the same.

Seen by a reader, and by a reader of changes: row ids, row commit versions, column mapping, tags, domains, old
versions, deletion vectors where no file is rewritten; and each commit says `dataChange=false`.
"""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.actions import AddCdcFile, DomainMetadata
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.log_compaction import compact_log
from delta_core.checkpoint.version_checksum import write_version_checksum
from delta_core.checkpoint.write import write_checkpoint
from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import ConfigurationError, DeltaError, UnsupportedTableFeatureError
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.backfill import enable_row_tracking
from delta_core.maintenance.clustering.plan import plan_z_order
from delta_core.maintenance.compaction import plan_compaction
from delta_core.maintenance.purge import plan_purge
from delta_core.maintenance.vacuum.apply import apply_vacuum
from delta_core.maintenance.vacuum.plan import plan_vacuum
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.feature import WriterKind, writer_features
from delta_core.transaction.file_actions import add_actions, remove_actions
from tests.support.preserved_tables import FEED, TABLES, TRACKED, Case, build, commit, fingerprint
from tests.support.soak import drawn

pytestmark = pytest.mark.slow

_DAY_SECONDS = 86_400
_NOT_TAILED = frozenset({"columnMapping", "deletionVectors"})
"""Tables that have them are not tailed: their files are more than their rows."""

_WATERMARK = "delta.rowTracking"


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One verb.

    Attributes:
        surface: by which a table refuses it.
        rewrites: whether rows come into other files.
        commits: whether there may be commits; others leave the newest version what it is.
    """

    run: Callable[[Path, Case], object]
    writer_kind: WriterKind
    rewrites: bool = False
    commits: bool = True


@pytest.fixture(autouse=True)
def _nothing_is_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def snapshot_of(root: Path) -> Snapshot:
    return Snapshot.load(LocalLogStore(root))


def compact(root: Path, case: Case) -> None:
    apply_rewrite(snapshot_of(root), plan_compaction(snapshot_of(root)))


def z_order(root: Path, case: Case) -> None:
    apply_rewrite(snapshot_of(root), plan_z_order(snapshot_of(root), [case.order_by]))


def purge(root: Path, case: Case) -> None:
    apply_rewrite(snapshot_of(root), plan_purge(snapshot_of(root)))


def vacuum(root: Path, case: Case) -> None:
    """Everything is old, and some of it is nobody's."""
    lost = [root / "lost.parquet", root / "_change_data" / "lost.parquet"]
    for path in lost:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"nobody's")
    _age(root)
    apply_vacuum(snapshot_of(root), plan_vacuum(snapshot_of(root)))
    assert not any(path.exists() for path in lost)


def repair(root: Path, case: Case) -> None:
    """Nothing is missing."""
    assert DeltaTable(root).repair(dry_run=False).plan.considered_files == len(_files(root))


def checkpoint(root: Path, case: Case) -> None:
    """And nothing but the checkpoint is left of what was before."""
    info = write_checkpoint(snapshot_of(root))
    assert info.version == snapshot_of(root).version


def log_compaction(root: Path, case: Case) -> None:
    latest = snapshot_of(root).version
    assert compact_log(snapshot_of(root), first=1, last=latest) is not None


def checksum(root: Path, case: Case) -> None:
    write_version_checksum(snapshot_of(root))


VERBS = {
    "compaction": Verb(run=compact, writer_kind=WriterKind.REWRITE, rewrites=True),
    "Z-order": Verb(run=z_order, writer_kind=WriterKind.REWRITE, rewrites=True),
    "purge": Verb(run=purge, writer_kind=WriterKind.REWRITE, rewrites=True),
    "vacuum": Verb(run=vacuum, writer_kind=WriterKind.VACUUM),
    "repair": Verb(run=repair, writer_kind=WriterKind.RESTORE, commits=False),
    "checkpoint": Verb(run=checkpoint, writer_kind=WriterKind.CHECKPOINT, commits=False),
    "log compaction": Verb(run=log_compaction, writer_kind=WriterKind.CHECKPOINT, commits=False),
    "checksum": Verb(run=checksum, writer_kind=WriterKind.CHECKPOINT, commits=False),
}

CLUSTERED = replace(
    TABLES["tracked"],
    features=TABLES["tracked"].features | {"clustering"},
    domains=(
        DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[["id"]]}'),
        DomainMetadata(domain="somebody.else", configuration='{"kept":true}'),
    ),
)
CASES = {**TABLES, "clustered": CLUSTERED}


def made(root: Path, case: Case) -> int:
    """The table, with a file of change data where it keeps them; its version."""
    build(root, case)
    if FEED.items() <= case.configuration.items() and not case.partition_columns:
        _delete_with_change_data(root)
    return snapshot_of(root).version


def _delete_with_change_data(root: Path) -> None:
    """A whole file goes, and change data says that three rows of it are all there was to say."""
    files = snapshot_of(root).files
    gone = max(add_actions(files.to_table(), data_change=True), key=lambda add: add.path)
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "the name": pa.array(["x", None, "z"]),
            "part": pa.array(["a", "a", None]),
            "_change_type": ["delete"] * 3,
        }
    )
    path = root / "_change_data" / "cdc-00000.parquet"
    path.parent.mkdir()
    pq.write_table(rows, path)
    change = AddCdcFile(
        path="_change_data/cdc-00000.parquet", partition_values={}, size_bytes=path.stat().st_size
    )
    chosen = files.to_table()
    mask = pa.array([found == gone.path for found in chosen["path"].to_pylist()])
    removes = remove_actions(
        chosen.filter(mask), deletion_timestamp_ms=SYSTEM_CLOCK.now_ms(), data_change=True
    )
    commit(root, change, *removes)


def _age(root: Path) -> None:
    old = os.stat(root).st_mtime - 60 * _DAY_SECONDS
    for path in root.rglob("*"):
        if path.is_file() and "_delta_log" not in path.parts:
            os.utime(path, (old, old))


def _files(root: Path) -> dict[str, Any]:
    """The live files with all that the log says of them."""
    return {add.path: add for add in add_actions(snapshot_of(root).files.to_table(), data_change=True)}


def _domains(root: Path) -> dict[str, str]:
    found = snapshot_of(root).domain_metadata
    return {name: one.configuration for name, one in found.items() if name != _WATERMARK}


def _tags(root: Path) -> Counter[Any]:
    return Counter((add.tags or {}).get("loaded") for add in _files(root).values())


def _says_nothing_of_data(root: Path, after: int) -> None:
    """No commit since says that data changed, in any of the ways that there are."""
    for version in range(after + 1, snapshot_of(root).version + 1):
        for line in (root / "_delta_log" / f"{version:020d}.json").read_text().splitlines():
            ((kind, fields),) = json.loads(line).items()
            assert kind != "cdc"
            if kind in ("add", "remove"):
                assert fields["dataChange"] is False
    table = DeltaTable(root)
    if table.metadata().configuration.get("delta.enableChangeDataFeed") == "true":
        assert table.version() == after or table.load_cdf(after + 1).read_all().num_rows == 0
    if not writer_features(table.protocol()) & _NOT_TAILED:
        assert list(table.appended_batches(after)) == []


@pytest.mark.parametrize(("name", "verb"), drawn(itertools.product(sorted(CASES), sorted(VERBS)), usual=20))
def test_a_verb_changes_nothing_that_is_seen(tmp_path: Path, name: str, verb: str) -> None:
    case, what, root = CASES[name], VERBS[verb], tmp_path / "table"
    version = made(root, case)
    before, files, domains, tags = fingerprint(root, up_to=version), _files(root), _domains(root), _tags(root)
    older = {at: _rows(root, at) for at in (1, version - 1)}
    assert before.rows
    refusal = _refusal(root, case, what)
    if refusal is not None:
        with pytest.raises(refusal):
            what.run(root, case)
        assert snapshot_of(root).version == version
        assert _files(root) == files
        return
    what.run(root, case)
    assert what.commits or snapshot_of(root).version == version
    assert fingerprint(root, up_to=version) == before
    assert _domains(root) == domains
    if what.rewrites:
        assert _tags(root).keys() <= tags.keys()
        assert None not in _tags(root) or None in tags
    else:
        assert _files(root) == files
    if case.configuration.keys() >= TRACKED.keys() and what.rewrites:
        _ids_below_the_watermark(root)
    _says_nothing_of_data(root, version)
    assert {at: _rows(root, at) for at in older} == older


def _refusal(root: Path, case: Case, verb: Verb) -> type[DeltaError] | None:
    if verb.run is z_order and "clustering" in case.features:
        return ConfigurationError  # its own columns say where its rows go
    try:
        snapshot_of(root).require_writable(writer_kind=verb.writer_kind)
    except UnsupportedTableFeatureError:
        return UnsupportedTableFeatureError
    return None


def _rows(root: Path, version: int) -> list[str]:
    return sorted(map(str, DeltaTable(root, version).to_pyarrow_table().to_pylist()))


def _ids_below_the_watermark(root: Path) -> None:
    table = DeltaTable(root)
    watermark = json.loads(table.domain_metadata()[_WATERMARK].configuration)["rowIdHighWaterMark"]
    assert all(0 <= row_id <= watermark for row_id in _ids(table))
    assert len(set(_ids(table))) == len(_ids(table))


def _ids(table: DeltaTable) -> list[int]:
    found: list[int] = table.to_pyarrow_table(row_ids=True)["_row_id"].to_pylist()
    return found


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_log_before_a_checkpoint_goes(tmp_path: Path, name: str) -> None:
    case, root = CASES[name], tmp_path
    version = made(root, case)
    before, files, domains = fingerprint(root, up_to=version), _files(root), _domains(root)
    write_checkpoint(snapshot_of(root))
    for path in (root / "_delta_log").iterdir():
        old = path.stat().st_mtime - 60 * _DAY_SECONDS
        os.utime(path, (old, old))
    # A clean-up goes by the newest file of the log, too.
    commit(root, data_change=False)
    cleaned = cleanup_expired_logs(snapshot_of(root))
    assert cleaned.checkpoint_version == version
    assert len(cleaned.files) == version
    assert not (root / "_delta_log" / f"{0:020d}.json").exists()
    table = DeltaTable(root)
    tracked = "delta.enableRowTracking" in case.configuration
    assert sorted(map(str, table.to_pyarrow_table(row_ids=tracked).to_pylist())) == before.rows
    assert (table.metadata(), table.protocol()) == (before.metadata, before.protocol)
    assert _files(root) == files
    assert _domains(root) == domains
    _says_nothing_of_data(root, version)


@pytest.mark.parametrize("name", ["filled", "materialised", "mapped by id", "numbered, not tracked"])
def test_a_backfill_numbers_rows_and_does_nothing_else(tmp_path: Path, name: str) -> None:
    case, root = CASES[name], tmp_path
    version = made(root, case)
    before, files = fingerprint(root, up_to=version), _files(root)
    try:
        snapshot_of(root).require_writable(writer_kind=WriterKind.COMMIT)
        enable_row_tracking(snapshot_of(root))
    except UnsupportedTableFeatureError:
        assert snapshot_of(root).version == version
        return
    table = DeltaTable(root)
    ids = _ids(table)
    assert len(set(ids)) == len(ids) == len(before.rows)
    assert sorted(map(str, table.to_pyarrow_table().to_pylist())) == before.rows
    plain = {
        path: replace(add, base_row_id=None, default_row_commit_version=None)
        for path, add in _files(root).items()
    }
    had = {
        path: replace(add, base_row_id=None, default_row_commit_version=None) for path, add in files.items()
    }
    assert plain == had
    kept = before.metadata.configuration.items() - {("delta.enableRowTracking", "false")}
    assert kept <= table.metadata().configuration.items()
    assert table.metadata().schema_string == before.metadata.schema_string
    _says_nothing_of_data(root, version)


def test_no_verb_that_commits_is_refused_by_every_table(tmp_path: Path) -> None:
    """Else the tests above would only have seen refusals."""
    for verb in VERBS.values():
        open_to = []
        for number, (name, case) in enumerate(CASES.items()):
            root = tmp_path / f"{verb.writer_kind.name}-{number}"
            if not root.exists():
                build(root, case, appends=1)
            try:
                snapshot_of(root).require_writable(writer_kind=verb.writer_kind)
            except UnsupportedTableFeatureError:
                continue
            open_to.append(name)
        assert len(open_to) >= 4
