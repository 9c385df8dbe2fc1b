"""Checking what commits of ours did, whatever others have committed since.

A commit that changes no data removes files and adds others that hold the same rows: both are read and
compared. Of any other commit the added files are looked up, and their footers compared with the statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Final

from delta_core.actions import AddFile, RemoveFile
from delta_core.clock import SYSTEM_CLOCK, Clock
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
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import parallel

_MOST_FOOTERS: Final = 20


def verify_commits(
    store: LogStore,
    versions: Sequence[int],
    *,
    allowed_roots: Sequence[LogStore] = (),
    clock: Clock = SYSTEM_CLOCK,
) -> VerificationReport:
    """Check the files that some commits added, and that those which only moved rows kept every one.

    The checks of each commit that added or removed files: `files_exist` (with the size that the log gives).
    Then, where it changes no data, `same_bytes` (of files whose writer left a parity) and `same_rows`; where
    it does, `row_counts` (statistics against footers, of 20 files at most).
    Versions that others committed in between or afterwards play no part.

    Args:
        store: the table's store.
        versions: the commits, in any order.
        allowed_roots: where absolute paths of the log may lead, for a shallow clone; see `Scan`.
        clock: paces repeated looks.

    Returns:
        The report; without a commit it has no check, and nothing is asked of the store.

    Raises:
        DeltaError: a check could not be made at all, such as when a commit is not in the log any more, or the
            store does not answer.

    Cost: for each commit two requests, those of opening its version, one for each added file, and the files
    that it added and removed, wholly, where it changes no data.
    """
    access = DataAccess(allowed_roots=tuple(allowed_roots), clock=clock)
    checks: list[Check] = []
    ordered = sorted(set(versions))
    for version in ordered:
        checks += _checked(store, version, access, clock)
    return VerificationReport(uri=store.uri, version=ordered[-1] if ordered else -1, checks=tuple(checks))


def _checked(store: LogStore, version: int, access: DataAccess, clock: Clock) -> list[Check]:
    actions = commit_actions(store, version)
    adds = [action for action in actions if isinstance(action, AddFile)]
    removes = [action for action in actions if isinstance(action, RemoveFile)]
    if not adds and not removes:
        return []
    added, removed = [LoggedFile.of(add) for add in adds], [LoggedFile.of(remove) for remove in removes]
    checks = [_files_exist(store, version, added, access)]
    if not checks[0].passed:
        return checks
    if any(add.data_change for add in adds) or any(remove.data_change for remove in removes):
        return [*checks, _row_counts(store, version, added, access)]
    checks.append(_same_bytes(store, version, added, access))
    if not checks[-1].passed:
        return checks
    snapshot = Snapshot.load(store, version=version, clock=clock)
    return [*checks, _same_rows(snapshot, added, removed, access)]


def _files_exist(store: LogStore, version: int, files: Sequence[LoggedFile], access: DataAccess) -> Check:
    looks = [partial(size_problem, file, store=store, access=access) for file in files]
    return _of_each(
        "files_exist",
        version,
        parallel(store, looks),
        right="have the size that the log gives",
        unit="files",
    )


def _same_bytes(store: LogStore, version: int, files: Sequence[LoggedFile], access: DataAccess) -> Check:
    # One after the other: a file may be large.
    problems = [byte_problem(file, store=store, access=access) for file in files if file.parity is not None]
    return _of_each("same_bytes", version, problems, right="have the bytes that were written", unit="files")


def _row_counts(store: LogStore, version: int, files: Sequence[LoggedFile], access: DataAccess) -> Check:
    # Seeded by the version: a check that is repeated looks at the same files.
    chosen = Random(version).sample(list(files), min(_MOST_FOOTERS, len(files)))
    looks = [partial(footer_problem, file, store=store, access=access) for file in chosen]
    return _of_each(
        "row_counts",
        version,
        parallel(store, looks),
        right="agree with the statistics",
        unit="footers",
    )


def _of_each(name: str, version: int, problems: Sequence[str | None], *, right: str, unit: str) -> Check:
    """A check of single files that version added; a problem of None is none."""
    wrong = [problem for problem in problems if problem is not None]
    what = f"{len(problems)} {unit} that version {version} added"
    detail = f"{len(wrong)} of {what}: {some(wrong)}" if wrong else f"{what} {right}"
    return Check(name=name, passed=not wrong, detail=detail, figures=((unit, len(problems)),))


def _same_rows(
    snapshot: Snapshot, added: Sequence[LoggedFile], removed: Sequence[LoggedFile], access: DataAccess
) -> Check:
    version = snapshot.version
    reader = RowsOfFiles(snapshot, access)
    figures = (("files_read", len(added) + len(removed)),)
    try:
        here, there = reader.hash(added, reader.names), reader.hash(removed, reader.names)
    except DeltaError as error:
        if error.retryable:
            raise
        return Check(
            name="same_rows",
            passed=False,
            detail=f"the rows of version {version} cannot be compared: {error}",
            figures=figures,
        )
    return Check(
        name="same_rows",
        passed=here.minus(there).is_zero,
        detail=difference(here, there, of=f"version {version}", than="the files that it removed"),
        figures=(("rows_compared", here.rows), *figures),
    )


def difference(here: RowHash, there: RowHash, *, of: str, than: str) -> str:
    """How two multisets of rows differ, for people."""
    left = here.minus(there)
    if left.is_zero:
        return f"{of} has the same rows as {than}; {here.rows} of them were moved and compared"
    if left.rows:
        return f"{of} has {abs(left.rows)} rows {'more' if left.rows > 0 else 'fewer'} than {than}"
    columns = [name for name, value in left.columns if value]
    where = ", ".join(columns) if columns else "how values go together"
    return f"the rows of {of} differ from those of {than}, in {where}"
