"""Applying a clone with the source's history: the files are copied first, then the log is published."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from delta_core.clock import Clock
from delta_core.errors import CloneOutdatedError, ObjectNotFoundError
from delta_core.log.commit_reader import read_commits
from delta_core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint
from delta_core.log.listing import CheckpointFiles, LogListing, list_log, with_commits
from delta_core.log.log_path import commit_path
from delta_core.log.outer_tables import require_separate_directory
from delta_core.maintenance.clone.copying import copy_files
from delta_core.maintenance.clone.history.claim import require_claim
from delta_core.maintenance.clone.history.copies import plan_copies
from delta_core.maintenance.clone.history.digests import compare_files
from delta_core.maintenance.clone.history.kept_log import KeptLog, later_log, whole_log
from delta_core.maintenance.clone.history.path_mapping import PathMapping
from delta_core.maintenance.clone.history.publish import diverged, point_hint, publish_log
from delta_core.maintenance.clone.history.referenced_files import ReferencedFiles
from delta_core.maintenance.clone.history.staged_log import LogStaging
from delta_core.maintenance.clone.location_check import require_separate_locations
from delta_core.maintenance.clone.result import CloneResult, KeptHistory
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore


def clone_history(
    source: Snapshot,
    target: LogStore,
    *,
    from_version: int | None = None,
    compare_bytes: bool = False,
    run: Run = DEFAULT_RUN,
) -> CloneResult:
    """Copy a table with its log, up to a version. `clone_table` describes the result.

    The log is staged on this machine's disk while the files are copied. Memory: the paths of the files, and
    some commits or a few batches of a checkpoint.

    Args:
        source: the last version to copy.
        target: the clone's store.
        from_version: the oldest version that must be readable; None for every readable version.
        compare_bytes: read every file and its copy again, and compare them.
        run: the surroundings. The clock, the executor and the allowed roots are used.

    Raises:
        CloneError: the target has other files, or overlaps the source, or a file differs from the log.
        NestedTableError: the target would be in a directory of a third table.
        CloneDivergedError: the clone has versions of its own.
        CloneOutdatedError: the source's log was cleaned up meanwhile.
        MissingDataFileError: a file of the source is missing.
        VersionNotFoundError: `from_version` cannot be read.
        UnsupportedTableFeatureError: a version requires a feature that cannot be cloned.
        PathEscapeError: a version refers to files outside the source's root and the allowed roots.
        CorruptLogError, LogGapError: the source's log is damaged.
    """
    require_separate_locations(source.store, target)
    path_mapping = PathMapping(source=source.store, access=run.access)
    referenced = ReferencedFiles(path_mapping=path_mapping)
    listing = list_log(source.store)
    if not source.store.consistent_listing:
        start = 0 if listing.is_empty else listing.latest_version
        listing = with_commits(source.store, listing, range(start, source.version + 1))
    target_listing = list_log(target)
    is_new = target_listing.is_empty
    if is_new:
        require_separate_directory(target)
        kept = whole_log(listing, version=source.version, from_version=from_version, uri=source.store.uri)
    else:
        newest = target_listing.latest_version
        if newest > source.version:
            _require_source_log(source.store, listing, target, target_listing, path_mapping)
            return _unchanged(source, newest)
        kept = later_log(listing, after=newest, version=source.version, uri=source.store.uri)
        _require_source_log(source.store, listing, target, target_listing, path_mapping)
    _collect(referenced, source, source.store if is_new else target, kept, run.clock)
    require_claim(target, table_id=source.metadata.id)
    copies = plan_copies(referenced, source=source, target=target)
    with tempfile.TemporaryDirectory(prefix="deltaward-clone-") as directory:
        staging = LogStaging(
            store=source.store,
            kept=kept,
            path_mapping=path_mapping,
            may_have_sidecars=referenced.may_have_sidecars,
            directory=Path(directory),
        )
        files = staging.stage()
        hint = _hint(source.store, (*target_listing.checkpoints, *kept.checkpoints))
        copied = 0
        if copies.to_copy:
            copied = copy_files(copies.to_copy, target=target, run=run)
        if compare_bytes:
            compare_files(
                (*copies.to_copy, *copies.present),
                target=target,
                run=run,
            )
        new_commits, keeps_times = publish_log(files, target=target, is_new=is_new, clock=run.clock)
    point_hint(target, hint)
    return CloneResult(
        committed=None,
        source_version=source.version,
        files_copied=len(copies.to_copy),
        bytes_copied=copied,
        history=KeptHistory(
            first_version=kept.first_version if is_new else kept.first_version + 1,
            last_version=source.version,
            versions_copied=new_commits,
            files_gone=len(copies.missing),
            keeps_times=keeps_times,
        ),
    )


def _collect(
    referenced: ReferencedFiles, source: Snapshot, base: LogStore, kept: KeptLog, clock: Clock
) -> None:
    """Collect the files that the kept versions refer to, and check that all versions can be cloned."""
    try:
        if kept.first_version == source.version:
            first = source
        else:
            first = Snapshot.load(base, version=kept.first_version, clock=clock)
        referenced.begin(first, with_files=kept.starts_at_checkpoint)
        referenced.follow(source.store, kept)
    except ObjectNotFoundError as error:
        raise CloneOutdatedError(
            f"The log of {source.store.uri} was cleaned up while it was read.",
            cause=str(error),
            fix="Clone again. The clone then has the remaining history.",
        ) from error


def _require_source_log(
    source: LogStore,
    listing: LogListing,
    target: LogStore,
    target_listing: LogListing,
    path_mapping: PathMapping,
) -> None:
    """Refuse a clone whose newest commit is not the source's.

    Checking the newest commit suffices: a writer of another version has also written every later one.
    """
    newest = target_listing.latest_version
    target_commits = [commit for commit in target_listing.commits if commit.version == newest]
    source_commits = [commit for commit in listing.commits if commit.version == newest]
    if target_commits and source_commits:
        (actual,), (expected,) = read_commits(target, target_commits), read_commits(source, source_commits)
        if actual.data == path_mapping.translated(expected.data):
            return
    elif not target_commits:
        # A log that starts at a checkpoint may end there, without the commit of that version.
        checkpoints = [
            {item.names for item in one.checkpoints if item.version == newest}
            for one in (target_listing, listing)
        ]
        if checkpoints[0] and checkpoints[0] <= checkpoints[1]:
            return
    raise diverged(target, commit_path(newest))


def _hint(source: LogStore, checkpoints: Sequence[CheckpointFiles]) -> LastCheckpoint | None:
    """The source's `_last_checkpoint`, if the clone has the checkpoint; without sizes, which may differ."""
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
