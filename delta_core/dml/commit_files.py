"""Commits data files that are already written: the part of a write that all engines share.

Spark and the Arrow writer only produce `AddFile` actions. This module creates the table, evolves its schema,
removes replaced files and resolves conflicts with other writers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import AddFile
from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.clock import Clock
from delta_core.dml.metadata_update import (
    SAME_DEFINITION,
    MetadataUpdate,
    TableDefinition,
    plan_metadata_update,
)
from delta_core.dml.partition_overwrite import partitions_predicate
from delta_core.dml.post_commit import commit_and_checkpoint
from delta_core.dml.replace_where import ReplacementPlan, plan_replacement
from delta_core.errors import (
    ConfigurationError,
    MetadataChangedError,
    SchemaMismatchError,
    TableExistsError,
)
from delta_core.expressions.ast import Expression
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve_predicate as resolve_condition
from delta_core.run import DEFAULT_RUN, Run
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_result import Committed, Conflict, raise_for_result
from delta_core.transaction.file_actions import num_records, remove_actions
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.transaction import Transaction


class CommitMode(StrEnum):
    """How the new files affect the existing rows of the table."""

    CREATE = "create"
    APPEND = "append"
    OVERWRITE = "overwrite"
    REPLACE_WHERE = "replace_where"
    REPLACE_PARTITIONS = "replace_partitions"


_OPERATION = "WRITE"
_PARTITIONS = CommitMode.REPLACE_PARTITIONS

REMOVED_COLUMNS = tuple(name for name in LIVE_FILE_SCHEMA.names if name != "stats")
"""The fields of an `add` that its `remove` repeats. Statistics are not among them, so they stay undecoded."""

_MODE_NAMES = {
    CommitMode.CREATE: "ErrorIfExists",
    CommitMode.APPEND: "Append",
    CommitMode.OVERWRITE: "Overwrite",
    CommitMode.REPLACE_WHERE: "Overwrite",
    CommitMode.REPLACE_PARTITIONS: "Overwrite",
}


def commit_new_files(
    snapshot: Snapshot | None,
    store: LogStore,
    *,
    mode: CommitMode | str,
    adds: Sequence[AddFile],
    schema: StructType,
    predicate: Expression | str | None = None,
    definition: TableDefinition = SAME_DEFINITION,
    reads_table: bool = False,
    writer_kind: WriterKind,
    target_file_size_bytes: int | None = None,
    verified_at_ms: int | None = None,
    owned: OwnedFiles | None = None,
    change: MetadataUpdate | None = None,
    run: Run = DEFAULT_RUN,
) -> Committed:
    """Commit written files to the table. After a failure, delete them.

    The caller's files are deleted only when it is certain that no commit refers to them.

    Args:
        snapshot: the table that the write is based on; None creates the table.
        store: the table's store.
        mode: `create` (the table must not exist), `append`, `overwrite` (replaces all rows), `replace_where`
            (replaces the matching rows) or `replace_partitions` (replaces the rows of the partitions that
            `adds` belong to).
        adds: the files, already durable in the store.
        schema: the schema of the rows in the files, including partition columns.
        predicate: for `replace_where`. The caller must check that the new rows satisfy it.
        definition: the caller's arguments about the table. Its schema can be overwritten only with
            `overwrite`.
        reads_table: the rows depend on the table's rows, for example after a comparison of keys. Then any
            concurrent commit that adds or removes rows is a conflict, including blind appends and the
            creation of the table.
        writer_kind: the kind of the writer that wrote the files.
        target_file_size_bytes: for files that `replace_where` rewrites; the table's size when None.
        verified_at_ms: when `snapshot` was last known to be the newest, or when a check last found no table.
            None means now, and that a commit which creates the table checks again.
        owned: the files that the caller has written for this commit; all of `adds` when None. It is required
            when `adds` contains a live file of the table.
        change: the metadata update of `snapshot` for which the files were written. They contain its random
            physical names and high-water marks. It is planned here when None.
        run: the surroundings, such as the clock and the commit properties.

    Returns:
        The commit, or an `AlreadyApplied` when the table already had the idempotency key.

    Raises:
        TableExistsError: the mode is `create`, and the table exists, or another writer created it first.
        CommitError: the commit failed. The subclass depends on the reason; on `CommitStateUnknownError` the
            files are kept.
        SchemaError: the rows do not fit the table.
        ConfigurationError: the arguments contradict each other.
    """
    mode = CommitMode(mode)
    _check_arguments(mode, predicate, definition.overwrite_schema)
    owned = OwnedFiles(store=store).with_data(adds) if owned is None else owned
    if mode is CommitMode.CREATE and snapshot is not None:
        with owned.deleted_on_error():
            applied = run.already_applied(snapshot)
            if applied is None:
                raise table_exists(store.uri)
        return applied
    written_for = change
    while True:
        with owned.deleted_on_error():
            if change is None:
                change = plan_metadata_update(
                    snapshot, data_schema=schema, definition=definition, now_ms=run.now_ms()
                )
            # Files given without `change` were written for the table as it was in the first attempt.
            written_for = written_for or change
            if written_for is not change:
                _check_same_files(written_for, change)
            _check_layout(adds, change)
            resolved = resolve_predicate(predicate, change.schema)
            replaced = _replaced_partitions(adds, change) if mode is _PARTITIONS else resolved
            plan = None
            if snapshot is not None and replaced is not None:
                size = target_file_size_bytes or snapshot.properties.target_file_size_bytes
                plan = plan_replacement(
                    snapshot,
                    replaced,
                    target_file_size_bytes=size,
                    adds=adds,
                    plan=change.plan,
                    run=run,
                )
                owned = owned.with_data(plan.rewritten).with_changes(plan.changes)
        with owned.deleted_on_error():
            transaction = _begin(
                snapshot,
                store,
                operation_parameters=_parameters(mode, change, resolved),
                writer_kind=writer_kind,
                run=run,
                verified_at_ms=verified_at_ms,
                isolation=IsolationLevel.SERIALIZABLE if reads_table else None,
            )
            if reads_table and snapshot is not None:
                transaction.read_predicate(None)
            _stage(
                transaction,
                mode=mode,
                adds=adds,
                change=change,
                plan=plan,
                predicate=replaced,
                clock=run.clock,
            )
            transaction.prepare()
        result = commit_and_checkpoint(transaction)
        is_created_by_other = snapshot is None and isinstance(result, Conflict)
        if is_created_by_other and mode is not CommitMode.CREATE and not reads_table:
            # Another writer created the table first. The same files may fit that table.
            snapshot, change = Snapshot.load(store, clock=run.clock), None
            verified_at_ms = None
            continue
        owned.discard(result)
        if snapshot is None and isinstance(result, Conflict) and mode is CommitMode.CREATE:
            raise table_exists(
                store.uri, cause="Another writer created it at the same time."
            ) from result.error
        return raise_for_result(result)


def table_exists(uri: str, *, cause: str = "The write must create the table.") -> TableExistsError:
    """The error of a write that must create the table at `uri`, where one exists."""
    return TableExistsError(
        f"A Delta table already exists at {uri}.",
        cause=cause,
        fix="Use mode='append' or mode='overwrite' to write to it.",
    )


def _begin(
    snapshot: Snapshot | None,
    store: LogStore,
    *,
    operation_parameters: Mapping[str, Any],
    writer_kind: WriterKind,
    verified_at_ms: int | None,
    isolation: IsolationLevel | None,
    run: Run,
) -> Transaction:
    if snapshot is None:
        return run.create(
            store,
            operation=_OPERATION,
            writer_kind=writer_kind,
            operation_parameters=operation_parameters,
            verified_at_ms=verified_at_ms,
        )
    return run.begin(
        snapshot,
        operation=_OPERATION,
        writer_kind=writer_kind,
        operation_parameters=operation_parameters,
        verified_at_ms=verified_at_ms,
        isolation=isolation,
    )


def _stage(
    transaction: Transaction,
    *,
    mode: CommitMode,
    adds: Sequence[AddFile],
    change: MetadataUpdate,
    plan: ReplacementPlan | None,
    predicate: Expression | None,
    clock: Clock,
) -> None:
    # Rows that a replaceWhere copies have their ids in the files. All other rows are new.
    transaction.add(*change.actions).preserve_rows(True)
    snapshot = transaction.snapshot
    removed: pa.Table | None = None
    if plan is not None:
        transaction.read_predicate(predicate).read_files(plan.read_paths)
        # Copied rows have kept their row ids and row commit versions.
        transaction.add(*plan.rewritten, *plan.changes).preserve_rows(True)
        transaction.set_metrics(
            {"numCopiedRows": plan.kept_rows, "numAddedChangeFiles": len(plan.changes)}
            | ({} if plan.deleted_rows is None else {"numDeletedRows": plan.deleted_rows})
        )
        removed = plan.removed
    elif mode is CommitMode.OVERWRITE and snapshot is not None:
        transaction.read_predicate(None)
        removed = snapshot.files.to_table(columns=REMOVED_COLUMNS)
    if removed is not None:
        transaction.add(*remove_actions(removed, deletion_timestamp_ms=clock.now_ms()))
        transaction.set_metrics(
            {
                "numRemovedFiles": removed.num_rows,
                "numRemovedBytes": pc.sum(removed.column("size_bytes"), min_count=0).as_py(),
            }
        )
    transaction.add(*adds)
    counts = [num_records(add) for add in adds]
    transaction.set_metrics(
        {
            "numFiles": len(adds),
            "numOutputBytes": sum(add.size_bytes for add in adds),
            "numOutputRows": None if None in counts else sum(count or 0 for count in counts),
        }
    )


def _parameters(mode: CommitMode, change: MetadataUpdate, predicate: Expression | None) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "mode": _MODE_NAMES[mode],
        "partitionBy": list(change.partition_columns),
    }
    if predicate is not None:
        parameters["predicate"] = to_spark_sql(predicate)
    if mode is _PARTITIONS:
        parameters["isDynamicPartitionOverwrite"] = True
    return parameters


def _replaced_partitions(adds: Sequence[AddFile], change: MetadataUpdate) -> Expression:
    return partitions_predicate(
        adds,
        schema=change.schema,
        partition_columns=change.partition_columns,
        mapping=ColumnMapping.of(change.configuration),
    )


def resolve_predicate(predicate: Expression | str | None, schema: StructType) -> Expression | None:
    """Resolve a predicate, given as SQL text or as a tree, against a schema.

    Raises:
        ExpressionError: the predicate is not a condition, or does not fit the schema.
    """
    if predicate is None:
        return None
    if isinstance(predicate, str):
        return parse_predicate(predicate, schema)
    return resolve_condition(predicate, schema)


def _check_arguments(mode: CommitMode, predicate: Expression | str | None, overwrite_schema: bool) -> None:
    if (predicate is not None) != (mode is CommitMode.REPLACE_WHERE):
        raise ConfigurationError(
            "The arguments predicate and mode do not match.",
            cause="The mode replace_where needs a predicate, and no other mode takes one.",
            fix="Pass a predicate together with the mode replace_where, or pass neither.",
        )
    if overwrite_schema and mode is not CommitMode.OVERWRITE:
        raise ConfigurationError(
            "The schema can only be overwritten together with all rows.",
            cause="Rows that are kept would not fit the new schema.",
            fix="Use mode='overwrite' without a predicate, or merge the schema instead.",
        )


def _check_same_files(written_for: MetadataUpdate, change: MetadataUpdate) -> None:
    """Check that files written for the definition `written_for` are valid for the definition `change`.

    The files of plain tables have the same layout in every table. Other requirements of a table definition
    are met only when they were known when the files were written.
    """
    if written_for.plan.is_plain and change.plan.is_plain:
        return
    raise MetadataChangedError(
        "Another writer created the table at the same time with a different definition.",
        cause="The column mapping or the generated values of the written rows do not fit that table.",
        fix="Run the write again.",
    )


def _check_layout(adds: Sequence[AddFile], change: MetadataUpdate) -> None:
    mapping = ColumnMapping.of(change.configuration)
    fields = (change.schema.find(name) for name in change.partition_columns)
    expected = {mapping.physical_name(field) for field in fields if field is not None}
    misplaced = next((add for add in adds if set(add.partition_values) != expected), None)
    if misplaced is not None:
        raise SchemaMismatchError(
            f"The written files are partitioned by {sorted(misplaced.partition_values)}, "
            f"and the table is partitioned by {sorted(expected)}.",
            cause=f"The file {misplaced.path!r} was written for a different partitioning.",
            fix="Write the data again with the table's partition columns.",
        )
