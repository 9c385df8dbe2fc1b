"""`clone_table`: the public face of clones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.execution.executor import Executor
from delta_core.maintenance.clone.apply import CloneResult, apply_clone, plan_clone
from delta_core.snapshot.arguments import Instant, epoch_ms
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

    Requests: both logs; for a deep clone two or three for each file to copy, many side by side; one commit.

    Args:
        source_uri: the table to clone.
        target_uri: where the clone is to be; neither within the source nor around it.
        shallow: name the source's files instead of copying them.
        version: the source's version to clone; the newest when None.
        timestamp_ms: or its time, in epoch milliseconds or as a `datetime` with a zone.
        storage_options: for the source's store.
        target_storage_options: for the clone's store; those of the source when None.
        allowed_roots: where absolute paths of the source may lead, if it is a shallow clone itself.
        commit_properties: provenance, idempotency key and limits of the commit.
        executor: maps the copying; threads of this process when None.
        clock: where time comes from.

    Returns:
        What was done; `committed` is None when the clone was already what the source is.

    Raises:
        TableNotFoundError, VersionNotFoundError: there is no such source.
        CloneError: there is another table, or the places overlap, or a file has another size than the log
            says. Nothing stays behind.
        MissingDataFileError: a file of the source is gone. Nothing stays behind.
        PathEscapeError: the source names files outside of its root and of those that are allowed.
        UnsupportedTableFeatureError: the source uses a feature that cannot be cloned.
        ConcurrentModificationError: somebody else wrote to the clone meanwhile. Nothing stays behind.
        CommitStateUnknownError: the store never said whether the commit landed; the copies were kept.
    """
    require_commit_properties(commit_properties)
    source_store = open_store(source_uri, storage_options=storage_options, clock=clock)
    options = storage_options if target_storage_options is None else target_storage_options
    target = open_store(target_uri, storage_options=options, clock=clock)
    source = Snapshot.load(source_store, version=version, timestamp_ms=epoch_ms(timestamp_ms), clock=clock)
    roots = open_allowed_roots(allowed_roots, storage_options=storage_options, clock=clock)
    plan = plan_clone(source, target, shallow=shallow, allowed_roots=roots, clock=clock)
    found = None if plan.base is None else already_applied(plan.base, commit_properties.txn)
    if plan.base is not None and found is not None:
        applied = AlreadyApplied(version=plan.base.version, attempts=0, snapshot=plan.base, transaction=found)
        return CloneResult(committed=applied, source_version=source.version)
    return apply_clone(plan, properties=commit_properties, executor=executor, clock=clock)
