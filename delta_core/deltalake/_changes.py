"""How calls of `delta_core.deltalake` change a table of `delta_core`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from delta_core import table as core
from delta_core.actions import AddFile, RemoveFile
from delta_core.arguments import require_string
from delta_core.checkpoint.log_compaction import compact_log
from delta_core.deltalake.exceptions import ArgumentTypeError
from delta_core.deltalake.predicates import coerced
from delta_core.deltalake.protocols import with_versions_of_new_table
from delta_core.deltalake.transaction import AddAction, RemoveAction
from delta_core.dml.commit_files import CommitMode, commit_new_files
from delta_core.dml.definition import constraints, properties
from delta_core.dml.definition.change import commit_change, with_schema
from delta_core.dml.definition.replace import replace_table
from delta_core.dml.delete import delete_rows
from delta_core.dml.metadata_update import TableDefinition
from delta_core.dml.post_commit import commit_or_raise
from delta_core.dml.update import update_rows
from delta_core.errors import ConfigurationError, ProtocolError, SchemaError, SchemaMismatchError
from delta_core.expressions.ast import Expression
from delta_core.maintenance.restore.apply import apply_restore
from delta_core.maintenance.restore.plan import plan_restore
from delta_core.maintenance.vacuum.apply import apply_vacuum
from delta_core.maintenance.vacuum.file_keys import FileKeys, ListedPaths
from delta_core.maintenance.vacuum.files import VacuumFiles
from delta_core.maintenance.vacuum.plan import VacuumPlan, plan_vacuum
from delta_core.maintenance.vacuum.protected import NAMED_COLUMNS
from delta_core.run import Run
from delta_core.schema.field_metadata import GENERATION_KEY
from delta_core.schema.types import StructField, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.name_columns import name_column
from delta_core.storage.uri import uri_scheme
from delta_core.table_features.enablement import FEATURE_PREFIX, ProtocolRequest, protocol_for
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_properties import CommitProperties


def properties_of(configuration: Mapping[str, str | None] | None) -> dict[str, str] | None:
    """The properties that have a value."""
    if configuration is None or not isinstance(configuration, Mapping):
        return cast("dict[str, str] | None", configuration)
    return {name: value for name, value in configuration.items() if value is not None}


def store_options(
    table_uri: str | os.PathLike[str], options: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    """The options of a store. A local path takes none, and `deltalake` ignores them there."""
    is_local = not isinstance(table_uri, str) or uri_scheme(table_uri) in (None, "file")
    return None if is_local else options


def create_table(
    table_uri: str | os.PathLike[str],
    schema: StructType,
    *,
    mode: str,
    partition_by: Sequence[str],
    name: str | None,
    description: str | None,
    configuration: dict[str, str] | None,
    commit: CommitProperties,
    storage_options: Mapping[str, str] | None,
) -> core.DeltaTable:
    """Create an empty table, or follow the mode for a table that exists. Returns the open table."""
    if mode not in ("error", "append", "overwrite", "ignore"):
        raise ConfigurationError(
            f"{mode!r} is not a mode.", fix="Use 'error', 'append', 'overwrite' or 'ignore'."
        )
    exists = mode in ("overwrite", "ignore") and core.DeltaTable.is_deltatable(table_uri, storage_options)
    configuration = with_versions_of_new_table(configuration, schema)
    if exists:
        table = core.DeltaTable(table_uri, storage_options=storage_options)
        if mode == "overwrite":
            committed = replace_table(
                table.snapshot,
                schema=schema,
                partition_by=partition_by,
                configuration=configuration,
                name=name,
                description=description,
                or_create=True,
                run=table.new_run(commit),
            )
            table.advance_to(committed)
        return table
    return core.DeltaTable.create(
        table_uri,
        schema,
        partition_by=partition_by,
        configuration=configuration,
        name=name,
        description=description,
        commit_properties=commit,
        storage_options=storage_options,
    )


# ------------------------------------------------------------ rows


def delete(table: core.DeltaTable, predicate: str | None, run: Run) -> dict[str, Any]:
    """Delete rows; the metrics."""
    table.adopt_newest()
    result = delete_rows(table.snapshot, coerced(predicate, table.snapshot.schema), run=run)
    table.advance_to(result.committed)
    return dict(result.metrics)


def update(
    table: core.DeltaTable,
    run: Run,
    *,
    updates: Mapping[Any, Any] | None,
    new_values: Mapping[Any, Any] | None,
    predicate: str | None,
) -> dict[str, Any]:
    """Update rows; the metrics."""
    table.adopt_newest()
    condition = coerced(predicate, table.snapshot.schema)
    result = update_rows(table.snapshot, updates, condition, new_values=new_values, run=run)
    table.advance_to(result.committed)
    return dict(result.metrics)


def restore(table: core.DeltaTable, version: int, ignore_missing: bool, run: Run) -> dict[str, Any]:
    """Restore a version; the metrics."""
    plan = plan_restore(table.snapshot, version=version, run=run)
    result = apply_restore(table.snapshot, plan, ignore_missing_files=ignore_missing, run=run)
    table.advance_to(result.committed)
    return {"numRemovedFile": result.files_removed, "numRestoredFile": result.files_added}


# ------------------------------------------------------------ files and log


def vacuum(
    table: core.DeltaTable,
    run: Run,
    *,
    retention_hours: float | None,
    dry_run: bool,
    enforce_retention: bool,
    full: bool,
    keep_versions: Sequence[int],
) -> list[str]:
    """Delete files; their paths. Without `full`, only files that the log mentions."""
    table.adopt_newest()
    plan = plan_vacuum(
        table.snapshot,
        retention_hours=retention_hours,
        enforce_retention=enforce_retention,
        force=not enforce_retention,
        clock=run.clock,
    )
    plan = _without_versions(table.snapshot, plan, keep_versions, full=full)
    if dry_run:
        return plan.columns.paths
    result = apply_vacuum(table.snapshot, plan, run=run)
    table.update_incremental()
    kept = set(result.kept)
    return [path for path in plan.columns.paths if path not in kept]


def _without_versions(
    snapshot: Snapshot, plan: VacuumPlan, keep_versions: Sequence[int], *, full: bool
) -> VacuumPlan:
    paths = plan.columns.paths
    chosen = np.ones(len(paths), dtype=bool)
    listed = ListedPaths(name_column(paths))
    if not full and paths:
        mentioned = FileKeys(root_uri=snapshot.store.uri)
        mentioned.add_files(snapshot.tombstones(since_ms=0))
        chosen &= mentioned.match_paths(listed)
    for version in keep_versions:
        keys = FileKeys(root_uri=snapshot.store.uri)
        needed = Snapshot.load(snapshot.store, version=version, clock=snapshot.clock)
        for batch in needed.files.batches(NAMED_COLUMNS):
            keys.add_files(batch)
        if paths:
            chosen &= ~keys.protect(listed)
    files = [file for file, is_chosen in zip(plan.files, chosen, strict=True) if is_chosen]
    return replace(plan, files=VacuumFiles.of(files))


def compact_logs(table: core.DeltaTable, first: int, last: int) -> None:
    """Write a log compaction file."""
    compact_log(table.snapshot, first=first, last=last)


def commit_actions(
    table: core.DeltaTable,
    actions: Sequence[Any],
    *,
    mode: str,
    schema: StructType,
    partition_by: Sequence[str] | None,
    replaced: Expression | str | None,
    run: Run,
) -> None:
    """Commit files that are in the store already."""
    if mode not in ("append", "overwrite"):
        raise ConfigurationError(f"{mode!r} is not a mode of this call.", fix="Use 'append' or 'overwrite'.")
    table.adopt_newest()
    snapshot = table.snapshot
    adds = [_add(action) for action in actions if isinstance(action, AddAction)]
    removes = [action for action in actions if isinstance(action, RemoveAction)]
    if len(adds) + len(removes) != len(actions):
        raise ArgumentTypeError("An action is neither AddAction nor RemoveAction.", fix="Pass such objects.")
    if [(f.name, f.data_type) for f in schema] != [(f.name, f.data_type) for f in snapshot.schema]:
        raise SchemaMismatchError(
            "The schema is not the table's.",
            cause=f"The table has {snapshot.schema}.",
            fix="Pass its schema.",
        )
    if removes:
        transaction = run.begin(snapshot, operation="WRITE", operation_parameters={"mode": mode.title()})
        now_ms = run.now_ms()
        transaction.add(*adds, *(_remove(action, now_ms) for action in removes))
        transaction.read_files([action.path for action in removes])
        table.advance_to(commit_or_raise(transaction))
        return
    commit_mode = CommitMode.APPEND
    if mode == "overwrite":
        commit_mode = CommitMode.OVERWRITE if replaced is None else CommitMode.REPLACE_WHERE
    table.advance_to(
        commit_new_files(
            snapshot,
            snapshot.store,
            mode=commit_mode,
            adds=adds,
            schema=snapshot.schema,
            predicate=replaced,
            definition=TableDefinition(partition_by=partition_by or None),
            writer_kind=WriterKind.COMMIT,
            run=run,
        )
    )


def _add(action: AddAction) -> AddFile:
    return AddFile(
        path=action.path,
        partition_values=dict(action.partition_values),
        size_bytes=action.size,
        modification_time_ms=action.modification_time,
        data_change=action.data_change,
        stats=action.stats,
    )


def _remove(action: RemoveAction, now_ms: int) -> RemoveFile:
    return RemoveFile(
        path=action.path,
        deletion_timestamp_ms=action.deletion_timestamp or now_ms,
        data_change=action.data_change,
        size_bytes=action.size,
        partition_values=None if action.partition_values is None else dict(action.partition_values),
    )


# ------------------------------------------------------------ definition


def add_features(
    table: core.DeltaTable, names: Sequence[str], *, may_raise: bool, commit: CommitProperties
) -> None:
    """Add features in one commit. Commits also when the table has them all."""
    table.adopt_newest()
    snapshot = table.snapshot
    request = ProtocolRequest.of({FEATURE_PREFIX + name: "supported" for name in names})
    metadata = snapshot.metadata
    after = protocol_for(snapshot.schema, metadata.configuration, current=snapshot.protocol, request=request)
    before = snapshot.protocol
    raised = (
        after.min_reader_version > before.min_reader_version,
        (after.min_writer_version > before.min_writer_version),
    )
    if any(raised) and not may_raise:
        kind = "reader and writer" if raised[0] else "writer"
        versions = "reader is not v3, and writer not v7" if raised[0] else "min_writer is not v7"
        raise ProtocolError(
            f"Generic DeltaTable error: Table feature enables {kind} feature, but {versions}. Set "
            f"allow_protocol_versions_increase or increase version{'s' if raised[0] else ''} explicitly "
            "through set_tbl_properties.",
            cause=f"The protocol has the versions {before.min_reader_version}, {before.min_writer_version}.",
            fix="Pass allow_protocol_versions_increase=True.",
        )
    committed = commit_change(
        snapshot,
        operation="ADD FEATURE",
        parameters={"feature": sorted(request.features)},
        request=request,
        run=table.new_run(commit),
    )
    table.advance_to(committed)


def add_constraint(table: core.DeltaTable, name: object, condition: object, commit: CommitProperties) -> None:
    """Add a CHECK constraint, which the table stores as given."""
    table.update_incremental()
    committed = constraints.add_constraint(
        table.snapshot,
        require_string(name, what="name of a constraint"),
        require_string(condition, what="condition of a constraint"),
        as_given=True,
        run=table.new_run(commit),
    )
    table.advance_to(committed)


def require_not_null(table: core.DeltaTable, column: object) -> None:
    """Refuse a column that allows nulls. Other faults of the name are left to the operation."""
    table.update_incremental()
    field = table.snapshot.schema.find(column) if isinstance(column, str) else None
    if field is not None and field.nullable:
        raise ConfigurationError(
            f"The column {field.name!r} allows nulls already.", fix="Leave the call out: nothing is to do."
        )


def set_description(
    table: core.DeltaTable,
    commit: CommitProperties,
    *,
    name: object = None,
    description: object = None,
) -> None:
    """Set the name or the description, under the name that `deltalake` gives the operation."""
    given = {
        key: require_string(value, what=f"{key} of a table")
        for key, value in (("name", name), ("description", description))
        if value is not None
    }
    if not given:
        raise ConfigurationError("There is no name and no description to set.", fix="Pass a string.")
    table.update_incremental()
    committed = properties.set_description(
        table.snapshot, **given, operation="UPDATE TABLE METADATA", run=table.new_run(commit)
    )
    table.advance_to(committed)


def refuse_generated_columns(known: StructType, fields: StructType) -> None:
    """Refuse new columns with generation expressions: existing rows would need values."""
    for field in fields:
        if GENERATION_KEY in field.metadata and known.find(field.name) is None:
            raise SchemaMismatchError(
                "Schema evolved fields cannot have generated expressions. "
                "Recreate the table to achieve this.",
                cause=f"The new column {field.name!r} has one, and existing rows have no value.",
                fix="Leave the expression out, or create a new table.",
            )


def add_columns(table: core.DeltaTable, fields: Sequence[StructField], commit: CommitProperties) -> None:
    """Add columns, and fields of structs that exist."""
    table.adopt_newest()
    existing = table.snapshot.schema
    new = [field for field in fields if existing.find(field.name) is None]
    nested = [
        (known, field)
        for field in fields
        if (known := existing.find(field.name)) is not None
        and isinstance(known.data_type, StructType)
        and isinstance(field.data_type, StructType)
    ]
    if len(new) + len(nested) < len(fields) or not fields:
        table.alter.add_columns(list(fields), commit_properties=commit)
        return
    if new:
        table.alter.add_columns(new, commit_properties=commit)
    for known, field in nested:
        inner, wanted = cast(StructType, known.data_type), cast(StructType, field.data_type)
        missing = [one for one in wanted if inner.find(one.name) is None]
        if missing:
            table.alter.add_columns(missing, parent=known.name, commit_properties=commit)


def set_column_metadata(
    table: core.DeltaTable, column: str, metadata: Mapping[str, str], commit: CommitProperties
) -> None:
    """Set entries in the metadata of a column of the table."""
    name = require_string(column, what="name of a column")
    if not isinstance(metadata, Mapping):
        raise ArgumentTypeError("The metadata is not a mapping.", fix="Pass {'comment': '...'}.")
    entries = {
        require_string(key, what="key of metadata"): require_string(value, what="value of metadata")
        for key, value in metadata.items()
    }
    reserved = sorted(key for key in entries if key.lower().startswith("delta."))
    if reserved:
        raise ConfigurationError(
            f"The entry {reserved[0]!r} cannot be set.",
            cause="Entries in delta. belong to the protocol.",
            fix="Use the operation that defines it, such as set_not_null or change_type.",
        )
    table.adopt_newest()
    snapshot = table.snapshot
    field = snapshot.schema.find(name)
    if field is None:
        raise SchemaError(
            f"No column {name!r} exists.",
            cause=f"The columns are {', '.join(snapshot.schema.names)}.",
            fix="Pass one of them.",
        )
    changed = replace(field, metadata={**field.metadata, **entries})
    schema = StructType(tuple(changed if one is field else one for one in snapshot.schema))
    committed = commit_change(
        snapshot,
        operation="CHANGE COLUMN",
        parameters={"column": field.name, "metadata": entries},
        metadata=with_schema(snapshot, schema),
        run=table.new_run(commit),
    )
    table.advance_to(committed)


def require_length(what: str, value: object, most: int) -> None:
    """Refuse a longer string, and an empty name."""
    rule = "cannot be empty and cannot exceed" if what == "name" else "cannot exceed"
    if isinstance(value, str) and (len(value) > most or (what == "name" and not value)):
        raise ConfigurationError(
            f"Table metadata is invalid: {what}: Table {what} {rule} {most} characters.",
            cause=f"It has {len(value)}.",
            fix="Pass a string of a fitting length.",
        )
