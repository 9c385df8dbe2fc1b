"""`clone_table`: the public face of clones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.execution.executor import Executor
from delta_core.maintenance.clone.apply import apply_clone, plan_clone
from delta_core.maintenance.clone.history import clone_history
from delta_core.maintenance.clone.result import CloneResult
from delta_core.snapshot.arguments import Instant, epoch_ms
from delta_core.snapshot.commit_time import whole_number
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import open_allowed_roots
from delta_core.storage.open import open_store
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    require_commit_properties,
)
from delta_core.transaction.commit_result import AlreadyApplied
from delta_core.transaction.idempotency import already_applied


@public
def clone_table(
    source_uri: str | os.PathLike[str],
    target_uri: str | os.PathLike[str],
    *,
    shallow: bool = False,
    version: int | None = None,
    timestamp_ms: Instant | None = None,
    storage_options: Mapping[str, str] | None = None,
    target_storage_options: Mapping[str, str] | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    keep_history: bool = False,
    history_from: int | None = None,
    compare_bytes: bool = False,
    commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    executor: Executor | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> CloneResult:
    """Make another table what this one is, or was: what Spark calls CLONE.

    Schema, partitioning, properties, constraints, metadata domains, row ids and protocol are the source's.
    The clone has an id, a history and versions of its own, and none of the source's idempotency keys. Its
    property `deltaward.cloneOf` names the source; a table without it is never replaced. Where the clone is
    there already it becomes what the source is, and rows that were written to the clone itself go: they
    stay in its history. The protocol never goes down.

    A deep clone copies the data files and deletion vectors that the clone does not have yet, under names of
    their own, and compares the size of each with the source's log. A shallow clone copies nothing and names
    the source's files by absolute paths. Hence

    - whoever reads it must allow the source's root: `DeltaTable(clone, allowed_roots=[source])`;
    - a vacuum *of the source* deletes files that the source has removed, and does not ask its clones: the
      clone's rows are then missing, which readers report as `MissingDataFileError`. Clone deep what must
      outlive the source's retention, or clone again after changes;
    - a vacuum of the clone deletes nothing of the source's.

    With `keep_history` the clone is the same table elsewhere: it has the source's versions, from the oldest
    that can be read, with their numbers, commits, times, table id and idempotency keys, and every file that
    one of them names. No commit is added, and the log is the source's byte for byte, save for absolute paths,
    which become the clone's. Files come first, then commits in order: whoever looks meanwhile finds no table,
    or the source at an older version. A clone that was cut short goes on when it is asked for again, and one
    that is there gets the later versions; of a clone with commits of its own nothing is changed. Times of
    commits are kept where they are in the commits (in-commit timestamps) or the store takes them (a file
    system); elsewhere `CloneResult.history` says that a time means the time of cloning. Files of older
    versions that a vacuum of the source has deleted are no obstacle; they are counted.

    Requests: both logs; for a deep clone two or three for each file to copy, many side by side; as many for
    each new file whose rows the clone's log must count and the source's does not (row ids, deletion vectors,
    Iceberg compatibility where checkpoints have no statistics); one commit.
    With `keep_history` the source's commits twice, two looks at each file, or listings of all of both tables,
    and in order one or two requests for each file of the log.

    Args:
        source_uri: the table to clone.
        target_uri: where the clone is to be; neither within the source nor around it.
        shallow: name the source's files instead of copying them.
        version: the source's version to clone; the newest when None.
        timestamp_ms: or its time, in epoch milliseconds or as a `datetime` with a zone.
        storage_options: for the source's store.
        target_storage_options: for the clone's store; those of the source when None.
        allowed_roots: where absolute paths of the source may lead, if it is a shallow clone itself.
        keep_history: copy the source's versions as well. Not for shallow clones: the files of older versions
            are those that a vacuum of the source deletes.
        history_from: the oldest version that is to be readable; where it has no checkpoint the history begins
            at the one before it. Of no account where the clone is there already.
        compare_bytes: with `keep_history`, read every file and its copy once more, and compare digests.
        commit_properties: provenance, idempotency key and limits of the commit; none with `keep_history`.
        executor: maps the copying; threads of this process when None.
        clock: where time comes from.

    Returns:
        What was done; `committed` is None when the clone was already what the source is.

    Raises:
        TableNotFoundError, VersionNotFoundError: there is no such source.
        CloneError: there is another table, or the places overlap, or a file has another size than the log
            says. Nothing stays behind, save for copies of a clone with history, which goes on with them.
        CloneDivergedError: with `keep_history`, the clone has versions of its own.
        CloneOutdatedError: with `keep_history`, the source's log was cleaned up meanwhile.
        ConfigurationError: arguments that do not go together.
        MissingDataFileError: a file of the source is gone. What stays behind is as for `CloneError`.
        InvalidTableError: a file whose rows must be counted is not Parquet.
        PathEscapeError: the source names files outside of its root and of those that are allowed.
        UnsupportedTableFeatureError: the source uses a feature that cannot be cloned.
        ConcurrentModificationError: somebody else wrote to the clone meanwhile. Nothing stays behind.
        CommitStateUnknownError: the store never said whether the commit landed; the copies were kept.
    """
    require_commit_properties(commit_properties)
    _require_arguments(
        shallow=shallow,
        keep_history=keep_history,
        only_of_history=history_from is not None or compare_bytes,
        has_properties=commit_properties != DEFAULT_COMMIT_PROPERTIES,
    )
    history_from = whole_number(history_from, what="history_from", fix="Pass a whole number such as 3.")
    source_store = open_store(source_uri, storage_options=storage_options, clock=clock)
    options = storage_options if target_storage_options is None else target_storage_options
    target = open_store(target_uri, storage_options=options, clock=clock)
    source = Snapshot.load(source_store, version=version, timestamp_ms=epoch_ms(timestamp_ms), clock=clock)
    roots = open_allowed_roots(allowed_roots, storage_options=storage_options, clock=clock)
    if keep_history:
        return clone_history(
            source,
            target,
            from_version=history_from,
            allowed_roots=roots,
            compare_bytes=compare_bytes,
            executor=executor,
            clock=clock,
        )
    plan = plan_clone(source, target, shallow=shallow, allowed_roots=roots, clock=clock)
    found = None if plan.base is None else already_applied(plan.base, commit_properties.txn)
    if plan.base is not None and found is not None:
        applied = AlreadyApplied(version=plan.base.version, attempts=0, snapshot=plan.base, transaction=found)
        return CloneResult(committed=applied, source_version=source.version)
    return apply_clone(plan, properties=commit_properties, executor=executor, clock=clock)


def _require_arguments(
    *, shallow: bool, keep_history: bool, only_of_history: bool, has_properties: bool
) -> None:
    if keep_history and shallow:
        raise ConfigurationError(
            "A shallow clone cannot keep the source's history.",
            cause="The files of older versions are those that a vacuum of the source deletes.",
            fix="Clone deep, or without the history.",
        )
    if keep_history and has_properties:
        raise ConfigurationError(
            "A clone with the source's history takes no commit properties.",
            cause="It makes no commit of its own.",
            fix="Leave them out.",
        )
    if only_of_history and not keep_history:
        raise ConfigurationError(
            "history_from and compare_bytes are of clones with the source's history.",
            fix="Pass keep_history=True, too, or leave them out.",
        )
