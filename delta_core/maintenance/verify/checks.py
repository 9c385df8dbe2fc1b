"""The checks of one version of a table. Each reports what it examined and the problems that it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from delta_core.errors import PathEscapeError
from delta_core.log.listing import list_log
from delta_core.maintenance.verify.commits import difference
from delta_core.maintenance.verify.files import (
    LoggedFile,
    RowsOfFiles,
    footer_problem,
    live_files,
    size_problem,
)
from delta_core.maintenance.verify.report import Check, VerificationReport, some
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.listed_files import listed_sizes
from delta_core.storage.uri import resolve_data_path


def verify_table(
    snapshot: Snapshot,
    *,
    compare_with_version: int | None = None,
    expected_rows: int | None = None,
    sample_footers: int = 20,
    run: Run = DEFAULT_RUN,
) -> VerificationReport:
    """Check a version of a table.

    The checks are `log_contiguous`, `paths_unique`, `files_exist` (with the sizes in the log), `row_counts`
    (statistics against the footers of a sample of files), `checksum` if the version has a checksum
    (PROTOCOL.md, "Version Checksum File"), `row_total` with `expected_rows`, and `same_rows` with
    `compare_with_version`.

    Args:
        snapshot: the version to check.
        compare_with_version: a version that must have the same rows. Reads all rows of the files that only
            one of the two versions has.
        expected_rows: the expected number of rows, compared with the statistics.
        sample_footers: number of footers to read.
        run: the surroundings. The clock and the allowed roots are used.

    Raises:
        DeltaError: a check could not run, for example because the compared version is not in the log.
    """
    snapshot.require_readable(operation="verify the table", through_scan=True)
    access = run.access
    files = live_files(snapshot)
    checks = [
        _log_contiguous(snapshot),
        _paths_unique(files),
        _files_exist(snapshot, files, access),
        _row_counts(snapshot, files, sample_footers, access),
    ]
    if snapshot.segment.checksum is not None:
        checks.append(_checksum(snapshot))
    if expected_rows is not None:
        checks.append(_row_total(files, expected_rows))
    if compare_with_version is not None:
        checks.append(_same_rows(snapshot, files, compare_with_version, access))
    return VerificationReport(uri=snapshot.store.uri, version=snapshot.version, checks=tuple(checks))


def _log_contiguous(snapshot: Snapshot) -> Check:
    listing = list_log(snapshot.store)
    versions = [commit.version for commit in listing.commits]
    # As ranges, not as single versions: a stray file name may be billions of versions away.
    gaps = [(low + 1, high - 1) for low, high in pairwise(versions) if high > low + 1]
    span = f"versions {versions[0]} to {versions[-1]}" if versions else "no commit files"
    missing = some([str(low) if low == high else f"{low} to {high}" for low, high in gaps])
    detail = f"{span}, missing: {missing}" if gaps else f"{span}, none missing"
    return Check(name="log_contiguous", passed=not gaps, detail=detail, metrics=(("commits", len(versions)),))


def _paths_unique(files: Sequence[LoggedFile]) -> Check:
    paths = [file.path for file in files]
    duplicates = sorted(path for path, count in Counter(paths).items() if count > 1)
    detail = f"{len(paths)} live files, " + (
        f"more than once: {some(duplicates)}" if duplicates else "without duplicates"
    )
    return Check(name="paths_unique", passed=not duplicates, detail=detail, metrics=(("files", len(paths)),))


def _files_exist(snapshot: Snapshot, files: Sequence[LoggedFile], access: DataAccess) -> Check:
    store = snapshot.store
    listed = listed_sizes(store)
    problems = []
    for file in files:
        try:
            size_bytes = listed.get(resolve_data_path(file.path, root_uri=store.uri))
        except PathEscapeError:
            problem = size_problem(file, store=store, access=access)
            problems += [] if problem is None else [problem]
            continue
        if size_bytes is None:
            problems.append(f"{file.path} (missing)")
        elif size_bytes != file.size_bytes:
            problems.append(f"{file.path} ({size_bytes} bytes instead of {file.size_bytes})")
    detail = f"{len(files)} files have the size that the log records"
    if problems:
        detail = f"{len(problems)} of {len(files)} files: {some(problems)}"
    return Check(name="files_exist", passed=not problems, detail=detail, metrics=(("files", len(files)),))


def _row_counts(snapshot: Snapshot, files: Sequence[LoggedFile], sample: int, access: DataAccess) -> Check:
    # Seeded by the version, so that a repeated run checks the same files.
    chosen = Random(snapshot.version).sample(list(files), min(sample, len(files)))
    results = [footer_problem(file, store=snapshot.store, access=access) for file in chosen]
    problems = [problem for problem in results if problem is not None]
    detail = f"{len(chosen)} of {len(files)} footers agree with the statistics"
    if problems:
        detail = f"{len(problems)} of {len(chosen)} footers: {some(problems)}"
    return Check(name="row_counts", passed=not problems, detail=detail, metrics=(("footers", len(chosen)),))


def _checksum(snapshot: Snapshot) -> Check:
    discrepancies = snapshot.checksum_discrepancies
    detail = "; ".join(discrepancies) or "files, bytes, protocol and metadata match the version's checksum"
    return Check(name="checksum", passed=not discrepancies, detail=detail)


def _row_total(files: Sequence[LoggedFile], expected: int) -> Check:
    counts = [_rows(file) for file in files]
    total = sum(count for count in counts if count is not None)
    unknown = sum(count is None for count in counts)
    detail = f"{total} rows, {expected} expected"
    if unknown:
        detail += f"; {unknown} files have no row count"
    return Check(
        name="row_total",
        passed=total == expected and not unknown,
        detail=detail,
        metrics=(("rows", total), ("expected", expected)),
    )


def _rows(file: LoggedFile) -> int | None:
    """The number of rows of a file that are not deleted, from the log; None without a row count."""
    count, dv = file.num_records, file.deletion_vector
    return count if count is None or dv is None else count - dv.cardinality


def _same_rows(snapshot: Snapshot, files: Sequence[LoggedFile], version: int, access: DataAccess) -> Check:
    other = Snapshot.load(snapshot.store, version=version, clock=access.clock)
    names, other_names = snapshot.schema.names, other.schema.names
    if set(names) != set(other_names):
        changed = sorted(set(names) ^ set(other_names))
        return Check(
            name="same_rows",
            passed=False,
            detail=f"columns differ from version {version}: {', '.join(changed)}",
        )
    here_rows, there_rows = RowsOfFiles(snapshot, access), RowsOfFiles(other, access)
    now, then = {file.key: file for file in files}, {file.key: file for file in live_files(other)}
    only_now = [file for key, file in now.items() if key not in then]
    only_then = [file for key, file in then.items() if key not in now]
    here, there = here_rows.hash(only_now, names), there_rows.hash(only_then, names)
    return Check(
        name="same_rows",
        passed=here.minus(there).is_zero,
        detail=difference(here, there, of=f"version {snapshot.version}", than=f"version {version}"),
        metrics=(("rows_compared", here.rows), ("files_read", len(only_now) + len(only_then))),
    )
