"""A clone with the source's history: files first, then the log, and nothing of it before all is there."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import CloneOutdatedError, ObjectNotFoundError
from delta_core.execution.executor import Executor
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.log.commit_reader import read_commits
from delta_core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint
from delta_core.log.listing import CheckpointFiles, LogListing, list_log, with_commits
from delta_core.log.log_path import commit_path
from delta_core.maintenance.clone.copying import copy_files
from delta_core.maintenance.clone.history.claim import require_claim
from delta_core.maintenance.clone.history.copies import plan_copies
from delta_core.maintenance.clone.history.digests import compare_files
from delta_core.maintenance.clone.history.kept_log import KeptLog, later_log, whole_log
from delta_core.maintenance.clone.history.named_files import NamedFiles
from delta_core.maintenance.clone.history.names import Names
from delta_core.maintenance.clone.history.publish import diverged, point_hint, publish_log
from delta_core.maintenance.clone.history.staged_log import LogStaging
from delta_core.maintenance.clone.places import require_apart
from delta_core.maintenance.clone.result import CloneResult, KeptHistory
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import MAX_REQUESTS


def clone_history(
    source: Snapshot,
    target: LogStore,
    *,
    from_version: int | None = None,
    allowed_roots: Sequence[LogStore] = (),
    compare_bytes: bool = False,
    executor: Executor | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> CloneResult:
    """Copy a table with its log, up to a version; `clone_table` says what that means.

    The log waits on this machine's disk while the files are copied. Memory: the names of the files, and some
    commits or a few batches of a checkpoint.

    Args:
        source: the last version to copy.
        target: the clone's store.
        from_version: the oldest version that is to be readable; None for all that are.
        allowed_roots: where the source's absolute paths may lead.
        compare_bytes: read every file and its copy once more.
        executor: maps the copying; threads of this process when None.
        clock: paces attempts.

    Raises:
        CloneError: the place is not free, or overlaps the source's, or a file is not as the log says.
        CloneDivergedError: the clone has versions of its own.
        CloneOutdatedError: the source's log was cleaned up meanwhile.
        MissingDataFileError: a file of the source is gone.
        VersionNotFoundError: `from_version` cannot be read.
        UnsupportedTableFeatureError: a version needs something that cannot be cloned.
        PathEscapeError: a version names files outside of the source's root and of those that are allowed.
        CorruptLogError, LogGapError: the source's log is damaged.
    """
    require_apart(source.store, target)
    names = Names(source=source.store, access=DataAccess(allowed_roots=tuple(allowed_roots), clock=clock))
    named = NamedFiles(names=names)
    listing = list_log(source.store)
    if not source.store.consistent_listing:
        start = 0 if listing.is_empty else listing.latest_version
        listing = with_commits(source.store, listing, range(start, source.version + 1))
    there = list_log(target)
    is_new = there.is_empty
    if is_new:
        kept = whole_log(listing, version=source.version, from_version=from_version, uri=source.store.uri)
    else:
        newest = there.latest_version
        if newest > source.version:
            _require_own(source.store, listing, target, there, names)
            return _unchanged(source, newest)
        kept = later_log(listing, after=newest, version=source.version, uri=source.store.uri)
        _require_own(source.store, listing, target, there, names)
    _look(named, source, source.store if is_new else target, kept, clock)
    require_claim(target, table_id=source.metadata.id)
    copies = plan_copies(named, source=source, target=target)
    remote = target.remote or source.store.remote
    executor = executor or InlineExecutor(MAX_REQUESTS if remote else None)
    with tempfile.TemporaryDirectory(prefix="deltaward-clone-") as directory:
        staging = LogStaging(
            store=source.store,
            kept=kept,
            names=names,
            may_have_sidecars=named.may_have_sidecars,
            directory=Path(directory),
        )
        files = staging.stage()
        hint = _hint(source.store, (*there.checkpoints, *kept.checkpoints))
        copied = 0
        if copies.missing:
            copied = copy_files(copies.missing, target=target, allowed_roots=allowed_roots, executor=executor)
        if compare_bytes:
            compare_files(
                (*copies.missing, *copies.present),
                target=target,
                allowed_roots=allowed_roots,
                executor=executor,
            )
        new_commits, keeps_times = publish_log(files, target=target, is_new=is_new, clock=clock)
    point_hint(target, hint)
    return CloneResult(
        committed=None,
        source_version=source.version,
        files_copied=len(copies.missing),
        bytes_copied=copied,
        history=KeptHistory(
            first_version=kept.first_version if is_new else kept.first_version + 1,
            last_version=source.version,
            versions_copied=new_commits,
            files_gone=len(copies.gone),
            keeps_times=keeps_times,
        ),
    )


def _look(named: NamedFiles, source: Snapshot, base: LogStore, kept: KeptLog, clock: Clock) -> None:
    """Find what the kept versions name, and that all of them can be cloned."""
    try:
        if kept.first_version == source.version:
            first = source
        else:
            first = Snapshot.load(base, version=kept.first_version, clock=clock)
        named.begin(first, with_files=kept.starts_at_checkpoint)
        named.follow(source.store, kept)
    except ObjectNotFoundError as error:
        raise CloneOutdatedError(
            f"The history of {source.store.uri} was cleaned up while it was looked at.",
            cause=str(error),
            fix="Clone again: what is left of the history is copied then.",
        ) from error


def _require_own(
    source: LogStore, listing: LogListing, target: LogStore, there: LogListing, names: Names
) -> None:
    """Refuse a clone whose newest commit is not the source's; whoever wrote behind it has written it, too."""
    newest = there.latest_version
    ours = [commit for commit in there.commits if commit.version == newest]
    theirs = [commit for commit in listing.commits if commit.version == newest]
    if ours and theirs:
        (found,), (expected,) = read_commits(target, ours), read_commits(source, theirs)
        if found.data == names.translated(expected.data):
            return
    elif not ours:
        # A log that starts at a checkpoint may have ended there, and the commit be gone.
        checkpoints = [
            {item.names for item in one.checkpoints if item.version == newest} for one in (there, listing)
        ]
        if checkpoints[0] and checkpoints[0] <= checkpoints[1]:
            return
    raise diverged(target, commit_path(newest))


def _hint(source: LogStore, checkpoints: Sequence[CheckpointFiles]) -> LastCheckpoint | None:
    """The source's, of a checkpoint that the clone has; without its sizes, which may be others there."""
    hint = read_last_checkpoint(source)
    if hint is None or hint.version not in {item.version for item in checkpoints}:
        return None
    return LastCheckpoint(
        version=hint.version, size=hint.size, parts=hint.parts, num_add_files=hint.num_add_files
    )


def _unchanged(source: Snapshot, newest: int) -> CloneResult:
    return CloneResult(
        committed=None,
        source_version=source.version,
        history=KeptHistory(
            first_version=newest, last_version=newest, versions_copied=0, files_gone=0, keeps_times=True
        ),
    )
