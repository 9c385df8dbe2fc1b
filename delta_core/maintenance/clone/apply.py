"""Planning and applying a clone: the files are copied first, then one commit adds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa

from delta_core.actions import Action, AddFile, Metadata, Protocol
from delta_core.clock import Clock
from delta_core.dml.post_commit import commit_or_raise
from delta_core.errors import CloneError
from delta_core.log.outer_tables import require_separate_directory
from delta_core.maintenance.clone.copying import copy_files
from delta_core.maintenance.clone.location_check import require_separate_locations
from delta_core.maintenance.clone.result import CloneResult
from delta_core.maintenance.clone.translation import (
    CLONE_OF,
    Copier,
    Copy,
    copied_properties,
    identity_of,
    shallow_clone_files,
)
from delta_core.maintenance.domains import domain_changes
from delta_core.maintenance.row_counts import with_needed_counts
from delta_core.run import DEFAULT_RUN, Run
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import encode_data_path
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.identity import keep_high_water_marks
from delta_core.table_features.internal_properties import IN_COMMIT_TIMESTAMPS, restored_configuration
from delta_core.table_features.support import require_write_support
from delta_core.table_features.upgrade import merged
from delta_core.transaction.file_actions import add_actions, remove_actions
from delta_core.transaction.in_commit_time import has_in_commit_times, with_enablement_properties
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.row_ids import DOMAIN
from delta_core.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ClonePlan:
    """The changes that make the clone equal to the source.

    Attributes:
        source: the version that is cloned.
        target: the clone's store.
        base: the newest version of the clone; None when the clone does not exist yet.
        shallow: whether the clone refers to the source's files instead of copying them.
        allowed_roots: the roots that absolute paths in the source's log may lead to.
        protocol, metadata: the clone's table definition after the commit.
        actions: the other actions of the commit, besides protocol, metadata and files.
        adds: files that are new in the clone.
        copies: objects to copy for the new files.
        removed: the clone's files that the source does not have, as rows of LIVE_FILE_SCHEMA.
        verified_at_ms: when the target was read, in epoch milliseconds.
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
    verified_at_ms: int

    @property
    def is_empty(self) -> bool:
        """True when the clone already equals the source."""
        return (
            self.base is not None
            and not (self.adds or self.actions)
            and not (self.removed is not None and self.removed.num_rows)
            and (self.protocol, self.metadata) == (self.base.protocol, self.base.metadata)
        )


def plan_clone(source: Snapshot, target: LogStore, *, shallow: bool, run: Run = DEFAULT_RUN) -> ClonePlan:
    """Compare the source with the clone. Writes nothing; reads both logs.

    The only reads of data files are footers: those of new files whose row count the clone's log requires and
    the source's log lacks (`with_needed_counts`).

    Args:
        source: the version to clone.
        target: the store rooted at the existing or future clone.
        shallow: refer to the source's files instead of copying them.
        run: the surroundings. Its allowed roots are those of the source, when that is a shallow clone.

    Raises:
        CloneError: the target is another table, or one of source and target lies within the other.
        NestedTableError: the target would be in a directory of a third table.
        UnsupportedTableFeatureError: the source requires a feature that cannot be cloned.
        PathEscapeError: the source refers to files outside its root and the allowed roots.
        MissingDataFileError, InvalidTableError: a required footer cannot be read.
    """
    verified_at_ms = run.now_ms()
    require_separate_locations(source.store, target)
    source.require_readable(operation="clone the table", through_scan=True)
    base = Snapshot.load(target, clock=run.clock) if Snapshot.exists(target) else None
    if base is None:
        require_separate_directory(target)
    access = run.access
    known: list[AddFile] = []
    if base is not None:
        _require_clone(base, source)
        known = list(add_actions(base.files.to_table(), data_change=True))
    files = add_actions(source.files.to_table(), data_change=True)
    if shallow:
        translated = shallow_clone_files(files, source=source.store, access=access, known=known)
    else:
        copier = Copier(table_id=source.metadata.id, source=source.store, access=access)
        translated = copier.translated(files, known=known)
    protocol, metadata = _definition(source, base, run.clock)
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
        translated.adds,
        protocol=protocol,
        metadata=metadata,
        origins=translated.origins,
        access=access,
    )
    removed = None
    if base is not None:
        rows = base.files.to_table()
        mask = [identity_of(add) not in translated.kept for add in known]
        removed = rows.filter(pa.array(mask, pa.bool_()))
    return ClonePlan(
        source=source,
        target=target,
        base=base,
        shallow=shallow,
        allowed_roots=run.allowed_roots,
        protocol=protocol,
        metadata=metadata,
        actions=tuple(_domains(source, base)),
        adds=tuple(adds),
        copies=translated.copies,
        removed=removed,
        verified_at_ms=verified_at_ms,
    )


def apply_clone(plan: ClonePlan, *, run: Run = DEFAULT_RUN) -> CloneResult:
    """Copy the objects of the plan, several at a time, then commit.

    Readers see the complete clone or no clone. When the commit fails, the copies are deleted.

    Args:
        plan: made by `plan_clone`.
        run: the surroundings, such as the clock and the commit properties. The allowed roots of
            the plan are used, not those of the run.

    Raises:
        MissingDataFileError: a file of the source is missing, for instance because a vacuum deleted it.
        CloneError: a file does not have the size that the source's log records.
        ConcurrentModificationError: another writer wrote to the clone, or created it.
        CommitStateUnknownError: the store did not confirm whether the commit succeeded; the copies were kept.
    """
    if plan.is_empty:
        return CloneResult(committed=None, source_version=plan.source.version)
    owned = OwnedFiles(store=plan.target, paths=tuple(encode_data_path(copy.path) for copy in plan.copies))
    copied = 0
    with owned.deleted_on_error(BaseException):
        if plan.copies:
            source_run = replace(run, allowed_roots=plan.allowed_roots)
            copied = copy_files(plan.copies, target=plan.target, run=source_run)
        transaction = _staged(plan, copied, run).prepare()
    committed = commit_or_raise(transaction, run.progress, owned=owned)
    if committed.already_applied:
        owned.delete()  # An earlier run with the same idempotency key has copied the files.
    return CloneResult(
        committed=committed,
        source_version=plan.source.version,
        files_added=len(plan.adds),
        files_removed=0 if plan.removed is None else plan.removed.num_rows,
        files_copied=len(plan.copies),
        bytes_copied=copied,
    )


def _staged(plan: ClonePlan, copied: int, run: Run) -> Transaction:
    parameters: dict[str, Any] = {
        "source": plan.source.store.uri,
        "sourceVersion": plan.source.version,
        "isShallow": plan.shallow,
    }
    if plan.base is None:
        transaction = run.create(
            plan.target,
            operation="CLONE",
            writer_kind=WriterKind.RESTORE,
            operation_parameters=parameters,
            verified_at_ms=plan.verified_at_ms,
        )
    else:
        transaction = run.begin(
            plan.base,
            operation="CLONE",
            writer_kind=WriterKind.RESTORE,
            operation_parameters=parameters,
            # Under a weaker level, rows that another writer appends meanwhile would stay in the clone.
            isolation=IsolationLevel.SERIALIZABLE,
        ).read_predicate(None)
    base = plan.base
    if base is None or plan.protocol != base.protocol:
        transaction.add(plan.protocol)
    if base is None or plan.metadata != base.metadata:
        transaction.add(plan.metadata)
    removed_bytes = 0
    if plan.removed is not None:
        removed_bytes = sum(plan.removed.column("size_bytes").to_pylist())
        transaction.add(*remove_actions(plan.removed, deletion_timestamp_ms=run.now_ms()))
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


def _definition(source: Snapshot, base: Snapshot | None, clock: Clock) -> tuple[Protocol, Metadata]:
    copied = copied_properties(source.metadata.configuration, table_id=source.metadata.id)
    if base is None:
        created = replace(
            source.metadata, id=str(uuid4()), configuration=copied, created_time_ms=clock.now_ms()
        )
        return source.protocol, with_enablement_properties(None, source.protocol, created)
    protocol = merged(base.protocol, source.protocol)
    schema = keep_high_water_marks(schema_from_json(source.metadata.schema_string), base.schema)
    changed = schema != schema_from_json(source.metadata.schema_string)
    configuration = restored_configuration(base.metadata.configuration, copied)
    if has_in_commit_times(source.protocol, source.metadata):
        # `restored_configuration` keeps the clone's value. The clone's commits have in-commit timestamps from
        # this commit on, and continue to have them after the source stops.
        configuration[IN_COMMIT_TIMESTAMPS] = "true"
    metadata = replace(
        source.metadata,
        id=base.metadata.id,
        created_time_ms=base.metadata.created_time_ms,
        schema_string=schema_to_json(schema) if changed else source.metadata.schema_string,
        configuration=configuration,
    )
    return protocol, with_enablement_properties(base, protocol, metadata)


def _domains(source: Snapshot, base: Snapshot | None) -> list[Action]:
    source_domains = source.domain_metadata
    present = {} if base is None else base.domain_metadata
    changes: list[Action] = list(domain_changes(present, source_domains))
    # The rows keep the source's row ids. New row ids of the clone start above them.
    high_water_mark = source_domains.get(DOMAIN)
    if high_water_mark is not None and high_water_mark != present.get(DOMAIN) and base is None:
        changes.append(high_water_mark)
    return changes


def _require_clone(base: Snapshot, source: Snapshot) -> None:
    if base.metadata.configuration.get(CLONE_OF) != source.metadata.id:
        raise CloneError(
            f"The table at {base.store.uri} is not a clone of {source.store.uri}.",
            cause=f"Its property {CLONE_OF} is not the source's id. Cloning would replace its rows.",
            fix="Choose a target location without a table.",
        )
