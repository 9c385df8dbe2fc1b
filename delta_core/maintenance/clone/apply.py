"""Planning a clone, and carrying it out: files are copied first, and one commit names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa

from delta_core.actions import Action, AddFile, Metadata, Protocol
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import CloneError, DeltaError
from delta_core.execution.executor import Executor
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.reporter import SILENT
from delta_core.maintenance.clone.copying import copy_files
from delta_core.maintenance.clone.places import require_apart
from delta_core.maintenance.clone.result import CloneResult
from delta_core.maintenance.clone.translation import (
    CLONE_OF,
    Copier,
    Copy,
    copied_properties,
    identity_of,
    named,
)
from delta_core.maintenance.commit import commit_with_events
from delta_core.maintenance.domains import domain_changes
from delta_core.maintenance.row_counts import with_needed_counts
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import MAX_REQUESTS
from delta_core.storage.uri import encode_data_path
from delta_core.table_features.identity import keep_high_water_marks
from delta_core.table_features.internal_properties import IN_COMMIT_TIMESTAMPS, restored_configuration
from delta_core.table_features.support import require_write_support
from delta_core.table_features.upgrade import merged
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import Committed, Rejected, raise_for_result
from delta_core.transaction.file_actions import add_actions, remove_actions
from delta_core.transaction.in_commit_time import has_in_commit_times, settled_provenance
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.row_ids import DOMAIN
from delta_core.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ClonePlan:
    """What turns the clone into what the source is.

    Attributes:
        source: the version that is cloned.
        target: the clone's store.
        base: the clone as it is; None where it is to be created.
        shallow: whether the source's files are named instead of copied.
        allowed_roots: where the source's own absolute paths may lead.
        protocol, metadata: the clone's.
        actions: what the commit holds besides those two and the files.
        adds: files that are new in the clone.
        copies: objects to copy for them.
        removed: rows of LIVE_FILE_SCHEMA: the clone's files that the source does not have.
        known_at_ms: when the clone's place was looked at.
    """

    source: Snapshot
    target: LogStore
    base: Snapshot | None
    shallow: bool
    allowed_roots: tuple[LogStore, ...]
    protocol: Protocol
    metadata: Metadata
    actions: tuple[Action, ...]
    adds: tuple[AddFile, ...]
    copies: tuple[Copy, ...]
    removed: pa.Table | None
    known_at_ms: int

    @property
    def is_empty(self) -> bool:
        """True when the clone is what the source is."""
        return (
            self.base is not None
            and not (self.adds or self.actions)
            and not (self.removed is not None and self.removed.num_rows)
            and (self.protocol, self.metadata) == (self.base.protocol, self.base.metadata)
        )


def plan_clone(
    source: Snapshot,
    target: LogStore,
    *,
    shallow: bool,
    allowed_roots: Sequence[LogStore] = (),
    clock: Clock = SYSTEM_CLOCK,
) -> ClonePlan:
    """Compare the source with the clone as it is. Writes nothing; reads both logs.

    Of data files the footers alone are read, and those only of files that are new in the clone, whose rows
    its log must count and the source's does not (`with_needed_counts`).

    Args:
        source: the version to clone.
        target: rooted where the clone is, or is to be.
        shallow: name the source's files instead of copying them.
        allowed_roots: where the source's own absolute paths may lead, if it is a shallow clone itself.
        clock: where time comes from.

    Raises:
        CloneError: there is another table, or the place is within the source or around it.
        UnsupportedTableFeatureError: the source needs something that cannot be cloned.
        PathEscapeError: the source names files outside of its root and of those that are allowed.
        MissingDataFileError, InvalidTableError: a footer that is needed cannot be read.
    """
    known_at_ms = clock.now_ms()
    require_apart(source.store, target)
    source.require_readable(operation="clone the table", through_scan=True)
    base = Snapshot.load(target, clock=clock) if Snapshot.exists(target) else None
    access = DataAccess(allowed_roots=tuple(allowed_roots), clock=clock)
    known: list[AddFile] = []
    if base is not None:
        _require_clone(base, source)
        known = list(add_actions(base.files.to_table(), data_change=True))
    files = add_actions(source.files.to_table(), data_change=True)
    if shallow:
        found = named(files, source=source.store, access=access, known=known)
    else:
        copier = Copier(table_id=source.metadata.id, source=source.store, access=access)
        found = copier.translated(files, known=known)
    protocol, metadata = _definition(source, base, clock)
    require_write_support(
        protocol,
        metadata,
        writer_kind=WriterKind.RESTORE,
        has_deletion_vectors=source.files.has_deletion_vectors,
        has_v2_checkpoint=False,
        operation="clone the table",
    )
    adds = with_needed_counts(
        source.store,
        found.adds,
        protocol=protocol,
        metadata=metadata,
        origins=found.origins,
        access=access,
    )
    removed = None
    if base is not None:
        rows = base.files.to_table()
        mask = [identity_of(add) not in found.kept for add in known]
        removed = rows.filter(pa.array(mask, pa.bool_()))
    return ClonePlan(
        source=source,
        target=target,
        base=base,
        shallow=shallow,
        allowed_roots=tuple(allowed_roots),
        protocol=protocol,
        metadata=metadata,
        actions=tuple(_domains(source, base)),
        adds=tuple(adds),
        copies=found.copies,
        removed=removed,
        known_at_ms=known_at_ms,
    )


def apply_clone(
    plan: ClonePlan,
    *,
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    executor: Executor | None = None,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> CloneResult:
    """Copy what the plan names, several objects side by side, then commit.

    Readers see the clone whole or not at all. Where the commit does not happen the copies are deleted.

    Args:
        plan: made by `plan_clone`.
        properties: provenance, idempotency key and limits of the commit.
        executor: maps the copying; threads of this process when None.
        observer: sees the commit's phases.
        clock: where time comes from.

    Raises:
        MissingDataFileError: a file of the source is gone, to a vacuum for instance.
        CloneError: a file is not of the size that the source's log says.
        ConcurrentModificationError: somebody else wrote to the clone, or created it.
        CommitStateUnknownError: the store never said whether the commit landed; the copies were kept.
    """
    if plan.is_empty:
        return CloneResult(committed=None, source_version=plan.source.version)
    owned = OwnedFiles(store=plan.target, paths=tuple(encode_data_path(copy.path) for copy in plan.copies))
    remote = plan.target.remote or plan.source.store.remote
    copied = 0
    try:
        if plan.copies:
            copied = copy_files(
                plan.copies,
                target=plan.target,
                allowed_roots=plan.allowed_roots,
                executor=executor or InlineExecutor(MAX_REQUESTS if remote else None),
            )
        transaction = _staged(plan, copied, properties, observer, clock).prepare()
    except BaseException as error:
        # Nothing was sent to the log, so nothing there can name the copies.
        reason = error if isinstance(error, DeltaError) else CloneError(f"The clone ended early: {error!r}.")
        owned.discard(Rejected(error=reason))
        raise
    result = commit_with_events(transaction, SILENT)
    if not isinstance(result, Committed) or result.already_applied:
        owned.discard(result if not isinstance(result, Committed) else _superfluous())
    return CloneResult(
        committed=raise_for_result(result),
        source_version=plan.source.version,
        files_added=len(plan.adds),
        files_removed=0 if plan.removed is None else plan.removed.num_rows,
        files_copied=len(plan.copies),
        bytes_copied=copied,
    )


def _staged(
    plan: ClonePlan, copied: int, properties: CommitProperties, observer: TransactionObserver, clock: Clock
) -> Transaction:
    parameters: dict[str, Any] = {
        "source": plan.source.store.uri,
        "sourceVersion": plan.source.version,
        "isShallow": plan.shallow,
    }
    if plan.base is None:
        transaction = Transaction.create(
            plan.target,
            operation="CLONE",
            writer_kind=WriterKind.RESTORE,
            operation_parameters=parameters,
            properties=properties,
            observer=observer,
            clock=clock,
            known_at_ms=plan.known_at_ms,
        )
    else:
        transaction = Transaction.begin(
            plan.base,
            operation="CLONE",
            writer_kind=WriterKind.RESTORE,
            operation_parameters=parameters,
            properties=properties,
            # Rows that were appended meanwhile would stay in what is to be a copy.
            isolation=IsolationLevel.SERIALIZABLE,
            observer=observer,
            clock=clock,
        ).read_predicate(None)
    base = plan.base
    if base is None or plan.protocol != base.protocol:
        transaction.add(plan.protocol)
    if base is None or plan.metadata != base.metadata:
        transaction.add(plan.metadata)
    removed_bytes = 0
    if plan.removed is not None:
        removed_bytes = sum(plan.removed.column("size_bytes").to_pylist())
        transaction.add(*remove_actions(plan.removed, deletion_timestamp_ms=clock.now_ms()))
    transaction.add(*plan.adds, *plan.actions).preserve_rows(True)
    transaction.set_metrics(
        {
            "sourceTableSize": sum(plan.source.files.to_table(["size_bytes"]).column(0).to_pylist()),
            "sourceNumOfFiles": len(plan.source.files),
            "numRemovedFiles": 0 if plan.removed is None else plan.removed.num_rows,
            "removedFilesSize": removed_bytes,
            "numCopiedFiles": len(plan.copies),
            "copiedFilesSize": copied,
        }
    )
    return transaction


def _superfluous() -> Rejected:
    return Rejected(error=CloneError("An earlier run with the same idempotency key has cloned the table."))


def _definition(source: Snapshot, base: Snapshot | None, clock: Clock) -> tuple[Protocol, Metadata]:
    given = copied_properties(source.metadata.configuration, table_id=source.metadata.id)
    if base is None:
        created = replace(
            source.metadata, id=str(uuid4()), configuration=given, created_time_ms=clock.now_ms()
        )
        return source.protocol, settled_provenance(None, source.protocol, created)
    protocol = merged(base.protocol, source.protocol)
    schema = keep_high_water_marks(schema_from_json(source.metadata.schema_string), base.schema)
    changed = schema != schema_from_json(source.metadata.schema_string)
    configuration = restored_configuration(base.metadata.configuration, given)
    if has_in_commit_times(source.protocol, source.metadata):
        # A restore would leave it as it is. The clone's commits carry their time from this one on, and go on
        # doing so where the source has stopped.
        configuration[IN_COMMIT_TIMESTAMPS] = "true"
    metadata = replace(
        source.metadata,
        id=base.metadata.id,
        created_time_ms=base.metadata.created_time_ms,
        schema_string=schema_to_json(schema) if changed else source.metadata.schema_string,
        configuration=configuration,
    )
    return protocol, settled_provenance(base, protocol, metadata)


def _domains(source: Snapshot, base: Snapshot | None) -> list[Action]:
    wanted = source.domain_metadata
    present = {} if base is None else base.domain_metadata
    changes: list[Action] = list(domain_changes(present, wanted))
    # The source's rows come with their ids, above which the clone counts on.
    watermark = wanted.get(DOMAIN)
    if watermark is not None and watermark != present.get(DOMAIN) and base is None:
        changes.append(watermark)
    return changes


def _require_clone(base: Snapshot, source: Snapshot) -> None:
    if base.metadata.configuration.get(CLONE_OF) != source.metadata.id:
        raise CloneError(
            f"The table at {base.store.uri} is no clone of {source.store.uri}.",
            cause=f"Its property {CLONE_OF} does not name the source's id; its rows would be replaced.",
            fix="Choose a place without a table.",
        )
