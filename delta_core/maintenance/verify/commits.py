"""Checks of single commits, independent of later commits.

For a commit that changes no data, the removed and the added files must have the same rows: both are read and
compared. For any other commit, the added files must exist, and their footers must match the statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Final

from delta_core.actions import AddFile, RemoveFile
from delta_core.errors import DeltaError
from delta_core.maintenance.verify.files import (
    LoggedFile,
    RowsOfFiles,
    byte_problem,
    footer_problem,
    size_problem,
)
from delta_core.maintenance.verify.report import Check, VerificationReport, some
from delta_core.maintenance.verify.row_hash import RowHash
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import parallel

_MOST_FOOTERS: Final = 20


def verify_commits(store: LogStore, versions: Sequence[int], *, run: Run = DEFAULT_RUN) -> VerificationReport:
    """Check the files that some commits added, and that commits which change no data kept every row.

    Each commit with added or removed files gets the check `files_exist` (with the sizes in the log). A commit
    that changes no data also gets `same_bytes` (for files with a recorded parity) and `same_rows`. Any other
    commit gets `row_counts` (statistics against footers, of at most 20 files). Other commits in between or
    afterwards do not affect the checks.

    Args:
        store: the table's store.
        versions: the versions of the commits, in any order.
        run: the surroundings. The clock and the allowed roots are used.

    Returns:
        The report. Without versions it has no checks and costs no request.

    Raises:
        DeltaError: a check could not run, for example because a commit is no longer in the log, or the store
            does not respond.

    Cost: for each commit two requests, the requests to load its version, and one for each added file. For a
    commit that changes no data, also a full read of the files that it added and removed.
    """
    checks: list[Check] = []
    ordered = sorted(set(versions))
    for version in ordered:
        checks += _checked(store, version, run)
    return VerificationReport(uri=store.uri, version=ordered[-1] if ordered else -1, checks=tuple(checks))


def _checked(store: LogStore, version: int, run: Run) -> list[Check]:
    actions = commit_actions(store, version)
    adds = [action for action in actions if isinstance(action, AddFile)]
    removes = [action for action in actions if isinstance(action, RemoveFile)]
    if not adds and not removes:
        return []
    added, removed = [LoggedFile.of(add) for add in adds], [LoggedFile.of(remove) for remove in removes]
    checks = [_files_exist(store, version, added, run.access)]
    if not checks[0].passed:
        return checks
    if any(add.data_change for add in adds) or any(remove.data_change for remove in removes):
        return [*checks, _row_counts(store, version, added, run.access)]
    checks.append(_same_bytes(store, version, added, run.access))
    if not checks[-1].passed:
        return checks
    snapshot = Snapshot.load(store, version=version, clock=run.clock)
    return [*checks, _same_rows(snapshot, added, removed, run.access)]


def _files_exist(store: LogStore, version: int, files: Sequence[LoggedFile], access: DataAccess) -> Check:
    lookups = [partial(size_problem, file, store=store, access=access) for file in files]
    return _of_each(
        "files_exist",
        version,
        parallel(store, lookups),
        right="have the size that the log records",
        unit="files",
    )


def _same_bytes(store: LogStore, version: int, files: Sequence[LoggedFile], access: DataAccess) -> Check:
    # Sequentially, since files may be large.
    problems = [byte_problem(file, store=store, access=access) for file in files if file.parity is not None]
    return _of_each(
        "same_bytes", version, problems, right="are unchanged since they were written", unit="files"
    )


def _row_counts(store: LogStore, version: int, files: Sequence[LoggedFile], access: DataAccess) -> Check:
    # Seeded by the version, so that a repeated check reads the same files.
    chosen = Random(version).sample(list(files), min(_MOST_FOOTERS, len(files)))
    reads = [partial(footer_problem, file, store=store, access=access) for file in chosen]
    return _of_each(
        "row_counts",
        version,
        parallel(store, reads),
        right="agree with the statistics",
        unit="footers",
    )


def _of_each(name: str, version: int, problems: Sequence[str | None], *, right: str, unit: str) -> Check:
    """A check of single files that a version added; `problems` has None for each file without a problem."""
    actual = [problem for problem in problems if problem is not None]
    subject = f"{len(problems)} {unit} that version {version} added"
    detail = f"{len(actual)} of {subject}: {some(actual)}" if actual else f"{subject} {right}"
    return Check(name=name, passed=not actual, detail=detail, metrics=((unit, len(problems)),))


def _same_rows(
    snapshot: Snapshot, added: Sequence[LoggedFile], removed: Sequence[LoggedFile], access: DataAccess
) -> Check:
    version = snapshot.version
    reader = RowsOfFiles(snapshot, access)
    metrics = (("files_read", len(added) + len(removed)),)
    try:
        here, there = reader.hash(added, reader.names), reader.hash(removed, reader.names)
    except DeltaError as error:
        if error.retryable:
            raise
        return Check(
            name="same_rows",
            passed=False,
            detail=f"the rows of version {version} cannot be compared: {error}",
            metrics=metrics,
        )
    return Check(
        name="same_rows",
        passed=here.minus(there).is_zero,
        detail=difference(here, there, of=f"version {version}", than="the files that it removed"),
        metrics=(("rows_compared", here.rows), *metrics),
    )


def difference(here: RowHash, there: RowHash, *, of: str, than: str) -> str:
    """A description of the difference between two multisets of rows."""
    remainder = here.minus(there)
    if remainder.is_zero:
        return f"{of} has the same rows as {than}; {here.rows} rewritten rows were compared"
    if remainder.rows:
        comparison = "more" if remainder.rows > 0 else "fewer"
        return f"{of} has {abs(remainder.rows)} rows {comparison} than {than}"
    columns = [name for name, value in remainder.columns if value]
    where = ", ".join(columns) if columns else "the combination of values in rows"
    return f"the rows of {of} differ from those of {than}, in {where}"
