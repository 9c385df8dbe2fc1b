"""`clone_table`: the public function that clones a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from delta_core.arguments import Instant, epoch_ms, whole_number
from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.execution.executor import Executor
from delta_core.maintenance.clone.apply import apply_clone, plan_clone
from delta_core.maintenance.clone.history import clone_history
from delta_core.maintenance.clone.result import CloneResult
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import open_allowed_roots
from delta_core.storage.open import open_store
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
)


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
    """Clone a table at one of its versions, like Spark's CLONE.

    The clone has the source's schema, partitioning, properties, constraints, metadata domains, row ids and
    protocol. It has its own id, history and versions, and none of the source's idempotency keys. Its property
    `deltaward.cloneOf` is the source's id; a table without this property is never replaced. A clone that
    exists already is made equal to the source: rows that were written to the clone itself are removed and
    stay in its history. The protocol is never downgraded.

    A deep clone copies the data files and deletion vectors that the clone does not have yet, under new names,
    and compares the size of each with the source's log. A shallow clone copies nothing and refers to the
    source's files by absolute paths. For a shallow clone

    - readers must allow the source's root: `DeltaTable(clone, allowed_roots=[source])`;
    - a vacuum *of the source* deletes files that the source has removed, even when the clone refers to them.
      Reads of the clone then raise `MissingDataFileError`. Use a deep clone for rows that must outlive the
      source's retention, or clone again after changes;
    - a vacuum of the clone deletes none of the source's files.

    With `keep_history` the clone is a copy of the table with its log. It has the source's versions from the
    oldest readable one, with their version numbers, commits, times, table id and idempotency keys, and every
    file that one of them refers to. No commit is added. The log equals the source's byte for byte, except
    that absolute paths become paths in the clone. Files are copied before the commits, and the commits in
    order, so a reader meanwhile finds no table or the source at an older version. A call after an
    interruption continues the copy. A call for an existing clone copies the later versions. A clone with its
    own commits is not changed. Commit times are kept when they are in the commits (in-commit timestamps) or
    when the store accepts modification times (a file system). Otherwise `CloneResult.history` records that
    commit times are the time of cloning. Files of older versions that a vacuum of the source deleted are
    counted and do not stop the clone.

    Requests: both logs; one commit; for a deep clone two or three requests for each copied file, many at a
    time; the same for each new file whose row count the clone's log requires and the source's log lacks (row
    ids, deletion vectors, Iceberg compatibility when checkpoints have no statistics).
    With `keep_history`: the source's commits twice; two requests for each file, or full listings of both
    tables; one or two requests for each file of the log, one at a time.

    Args:
        source_uri: the table to clone.
        target_uri: location of the clone; neither source nor target may lie within the other.
        shallow: refer to the source's files instead of copying them.
        version: the source's version to clone; the newest when None.
        timestamp_ms: the time of the source's version, instead of `version`: epoch milliseconds, or a
            `datetime` with a time zone.
        storage_options: options of the source's store.
        target_storage_options: options of the clone's store; those of the source when None.
        allowed_roots: the roots that absolute paths in the source's log may lead to, when the source is a
            shallow clone.
        keep_history: copy the source's versions, too. Not for shallow clones, since a vacuum of the source
            deletes the files of older versions.
        history_from: the oldest version that must be readable in the clone. When it has no checkpoint, the
            history begins at the checkpoint before it. Ignored when the clone exists already.
        compare_bytes: with `keep_history`, read every file and its copy again, and compare digests.
        commit_properties: provenance, idempotency key and limits of the commit; none with `keep_history`.
        executor: runs the copy tasks; threads of this process when None.
        clock: source of the current time.

    Returns:
        The result, with `committed=None` when the clone already equalled the source.

    Raises:
        TableNotFoundError, VersionNotFoundError: the source, or its version, does not exist.
        CloneError: the target is another table, or source and target overlap, or the size of a file differs
            from the log. No copies are left, except of a clone with history, which uses them when it
            continues.
        NestedTableError: the clone would be in a partition directory, or in the log, of a third table.
        CloneDivergedError: with `keep_history`, the clone has versions of its own.
        CloneOutdatedError: with `keep_history`, the source's log was cleaned up meanwhile.
        ConfigurationError: the arguments contradict each other.
        MissingDataFileError: a file of the source is missing. Copies are left as for `CloneError`.
        InvalidTableError: a file whose rows must be counted is not Parquet.
        PathEscapeError: the source refers to files outside its root and the allowed roots.
        UnsupportedTableFeatureError: the source uses a feature that cannot be cloned.
        ConcurrentModificationError: another writer wrote to the clone meanwhile. No copies are left.
        CommitStateUnknownError: the store did not confirm whether the commit succeeded; the copies were kept.
    """
    run = Run(clock=clock, executor=executor, commit=commit_properties)
    _require_arguments(
        shallow=shallow,
        keep_history=keep_history,
        has_history_arguments=history_from is not None or compare_bytes,
        has_properties=commit_properties != DEFAULT_COMMIT_PROPERTIES,
    )
    history_from = whole_number(history_from, what="history_from", fix="Pass a whole number such as 3.")
    source_store = open_store(source_uri, storage_options=storage_options, clock=clock)
    options = storage_options if target_storage_options is None else target_storage_options
    target = open_store(target_uri, storage_options=options, clock=clock)
    source = Snapshot.load(source_store, version=version, timestamp_ms=epoch_ms(timestamp_ms), clock=clock)
    run = replace(
        run, allowed_roots=open_allowed_roots(allowed_roots, storage_options=storage_options, clock=clock)
    )
    if keep_history:
        return clone_history(source, target, from_version=history_from, compare_bytes=compare_bytes, run=run)
    plan = plan_clone(source, target, shallow=shallow, run=run)
    applied = None if plan.base is None else run.already_applied(plan.base)
    if applied is not None:
        return CloneResult(committed=applied, source_version=source.version)
    return apply_clone(plan, run=run)


def _require_arguments(
    *, shallow: bool, keep_history: bool, has_history_arguments: bool, has_properties: bool
) -> None:
    if keep_history and shallow:
        raise ConfigurationError(
            "A shallow clone cannot keep the source's history.",
            cause="A vacuum of the source deletes the files of older versions.",
            fix="Pass shallow=False or keep_history=False.",
        )
    if keep_history and has_properties:
        raise ConfigurationError(
            "Commit properties cannot be used for a clone with the source's history.",
            cause="Such a clone makes no commit of its own.",
            fix="Leave commit_properties out, or pass keep_history=False.",
        )
    if has_history_arguments and not keep_history:
        raise ConfigurationError(
            "The arguments history_from and compare_bytes require keep_history=True.",
            fix="Pass keep_history=True, or leave the two arguments out.",
        )
