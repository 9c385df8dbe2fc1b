"""The checks. Each says what it looked at, whether it holds, and what is wrong when it does not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.parquet_reader import FileReader
from delta_core.errors import DeltaError, PathEscapeError, VerificationError
from delta_core.log.listing import list_log
from delta_core.maintenance.verify.row_hash import RowHash, hash_batches
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY
from delta_core.storage.listed_files import listed_sizes
from delta_core.storage.uri import resolve_data_path

_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check's outcome; `detail` is for people, `figures` for programs."""

    name: str
    passed: bool
    detail: str
    figures: tuple[tuple[str, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The check as a JSON object."""
        return {
            "name": self.name,
            "passed": self.passed,
            "detail": self.detail,
            "figures": dict(self.figures),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """All checks of one run."""

    version: int
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """True when every check passed."""
        return all(check.passed for check in self.checks)

    def error(self) -> VerificationError:
        """The error that names the failed checks."""
        failed = [check for check in self.checks if not check.passed]
        return VerificationError(
            f"{len(failed)} of {len(self.checks)} checks failed: {', '.join(c.name for c in failed)}",
            cause="; ".join(check.detail for check in failed),
            fix="do not go on with this table before the cause is known; an earlier version can be restored",
        )

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "version": self.version,
            "passed": self.passed,
            "checks": [check.to_json() for check in self.checks],
        }


def verify_table(
    snapshot: Snapshot,
    *,
    compare_with_version: int | None = None,
    expected_rows: int | None = None,
    sample_footers: int = 20,
    clock: Clock = SYSTEM_CLOCK,
) -> VerificationReport:
    """Check a version of a table.

    The checks: `log_contiguous`, `paths_unique`, `files_exist` (with the size that the log gives),
    `row_counts` (statistics against the footers of a sample), `checksum` when the version has one
    (PROTOCOL.md, "Version Checksum File"), `row_total` when a number is expected, and `same_rows` when there
    is a version to compare with.

    Args:
        snapshot: the version to check.
        compare_with_version: a version that must hold the same rows. Only the files that the two do not
            share are read, all of them wholly.
        expected_rows: the number of rows that there must be, by the statistics.
        sample_footers: how many footers are read.

    Raises:
        DeltaError: a check could not be made at all, such as when the compared version is not in the log.
    """
    snapshot.require_readable(operation="verify the table")
    files = snapshot.files.to_table(["path", "size_bytes", "stats"])
    checks = [
        _log_contiguous(snapshot),
        _paths_unique(files),
        _files_exist(snapshot, files),
        _row_counts(snapshot, files, sample_footers),
    ]
    if snapshot.segment.checksum is not None:
        checks.append(_checksum(snapshot))
    if expected_rows is not None:
        checks.append(_row_total(files, expected_rows))
    if compare_with_version is not None:
        checks.append(_same_rows(snapshot, compare_with_version, clock))
    return VerificationReport(version=snapshot.version, checks=tuple(checks))


def _log_contiguous(snapshot: Snapshot) -> Check:
    listing = list_log(snapshot.store)
    versions = [commit.version for commit in listing.commits]
    # Counted and not listed: a stray name may be billions of versions away.
    holes = [(low + 1, high - 1) for low, high in pairwise(versions) if high > low + 1]
    span = f"versions {versions[0]} to {versions[-1]}" if versions else "no commit files"
    missing = _some([str(low) if low == high else f"{low} to {high}" for low, high in holes])
    detail = f"{span}, missing: {missing}" if holes else f"{span}, none missing"
    return Check(
        name="log_contiguous", passed=not holes, detail=detail, figures=(("commits", len(versions)),)
    )


def _paths_unique(files: pa.Table) -> Check:
    paths = files["path"].to_pylist()
    twice = sorted(path for path, count in Counter(paths).items() if count > 1)
    detail = f"{len(paths)} live files" + (f", listed twice: {_some(twice)}" if twice else ", each once")
    return Check(name="paths_unique", passed=not twice, detail=detail, figures=(("files", len(paths)),))


def _files_exist(snapshot: Snapshot, files: pa.Table) -> Check:
    listed = listed_sizes(snapshot.store)
    problems = []
    rows = zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True)
    for raw, size in rows:
        try:
            found = listed.get(resolve_data_path(raw, root_uri=snapshot.store.uri))
        except PathEscapeError:
            problems.append(f"{raw} (outside the table)")
            continue
        if found is None:
            problems.append(f"{raw} (missing)")
        elif found != size:
            problems.append(f"{raw} ({found} bytes instead of {size})")
    detail = f"{files.num_rows} files have the size that the log gives"
    if problems:
        detail = f"{len(problems)} of {files.num_rows} files: {_some(problems)}"
    return Check(name="files_exist", passed=not problems, detail=detail, figures=(("files", files.num_rows),))


def _row_counts(snapshot: Snapshot, files: pa.Table, sample: int) -> Check:
    rows = list(zip(files["path"].to_pylist(), files["stats"].to_pylist(), strict=True))
    # Seeded by the version: a run that is repeated looks at the same files.
    chosen = Random(snapshot.version).sample(rows, min(sample, len(rows)))
    problems = []
    for raw, stats in chosen:
        try:
            path = resolve_data_path(raw, root_uri=snapshot.store.uri)
            with TABLE_ONLY.open(snapshot.store, path) as source:
                found = pq.read_metadata(source).num_rows
        except (DeltaError, pa.ArrowException, OSError) as error:
            problems.append(f"{raw} (unreadable: {error})")
            continue
        recorded = _num_records(stats)
        if recorded is not None and recorded != found:
            problems.append(f"{raw} ({found} rows, statistics say {recorded})")
    detail = f"{len(chosen)} of {len(rows)} footers agree with the statistics"
    if problems:
        detail = f"{len(problems)} of {len(chosen)} footers: {_some(problems)}"
    return Check(name="row_counts", passed=not problems, detail=detail, figures=(("footers", len(chosen)),))


def _checksum(snapshot: Snapshot) -> Check:
    wrong = snapshot.checksum_discrepancies
    detail = "; ".join(wrong) or "files, bytes, protocol and metadata are what the version's checksum says"
    return Check(name="checksum", passed=not wrong, detail=detail)


def _row_total(files: pa.Table, expected: int) -> Check:
    counts = [_num_records(stats) for stats in files["stats"].to_pylist()]
    total = sum(count for count in counts if count is not None)
    unknown = sum(count is None for count in counts)
    detail = f"{total} rows, {expected} expected"
    if unknown:
        detail += f"; {unknown} files have no row count"
    return Check(
        name="row_total",
        passed=total == expected and not unknown,
        detail=detail,
        figures=(("rows", total), ("expected", expected)),
    )


def _same_rows(snapshot: Snapshot, version: int, clock: Clock) -> Check:
    other = Snapshot.load(snapshot.store, version=version, clock=clock)
    other.require_readable(operation="verify the table")
    names = [name for name in snapshot.schema.names if name in set(other.schema.names)]
    if set(snapshot.schema.names) != set(other.schema.names):
        changed = sorted(set(snapshot.schema.names) ^ set(other.schema.names))
        return Check(
            name="same_rows",
            passed=False,
            detail=f"columns differ from version {version}: {', '.join(changed)}",
        )
    ours, theirs = _files(snapshot), _files(other)
    only_ours = {path: values for path, values in ours.items() if path not in theirs}
    only_theirs = {path: values for path, values in theirs.items() if path not in ours}
    here = hash_batches(_rows(snapshot, only_ours), names)
    there = hash_batches(_rows(other, only_theirs), names)
    return _compared(here, there, version, files_read=len(only_ours) + len(only_theirs))


def _compared(here: RowHash, there: RowHash, version: int, *, files_read: int) -> Check:
    left = here.minus(there)
    if left.is_zero:
        detail = f"the same rows as version {version}; {here.rows} of them were moved and compared"
    elif left.rows:
        detail = f"{abs(left.rows)} rows {'more' if left.rows > 0 else 'fewer'} than version {version}"
    else:
        columns = [name for name, value in left.columns if value]
        detail = f"rows differ from version {version}, in " + (
            ", ".join(columns) if columns else "how values go together"
        )
    return Check(
        name="same_rows",
        passed=left.is_zero,
        detail=detail,
        figures=(("rows_compared", here.rows), ("files_read", files_read)),
    )


def _files(snapshot: Snapshot) -> dict[str, dict[str, str | None]]:
    files = snapshot.files.to_table(["path", "partition_values"])
    values = files["partition_values"].to_pylist()
    return {path: dict(item or ()) for path, item in zip(files["path"].to_pylist(), values, strict=True)}


def _rows(snapshot: Snapshot, files: Mapping[str, dict[str, str | None]]) -> Iterator[pa.RecordBatch]:
    reader = FileReader(
        schema=snapshot.schema,
        columns=None,
        predicate=None,
        partition_columns=snapshot.partition_columns,
        batch_rows=65_536,
    )
    for raw, values in files.items():
        path = resolve_data_path(raw, root_uri=snapshot.store.uri)
        yield from reader.read(snapshot.store, path, values)


def _num_records(stats: str | None) -> int | None:
    try:
        count = json.loads(stats or "{}").get("numRecords")
    except (ValueError, AttributeError):
        return None
    return count if isinstance(count, int) else None


def _some(items: list[Any]) -> str:
    shown = ", ".join(str(item) for item in items[:_EXAMPLES])
    return shown if len(items) <= _EXAMPLES else f"{shown} and {len(items) - _EXAMPLES} more"
