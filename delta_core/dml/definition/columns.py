"""Changes of a table's columns that do not change its files.

`schema.column_changes` and `schema.column_types` define which changes are allowed.
`table_features.column_dependencies` finds what refers to a column. This module applies them to a snapshot and
commits each change. A column is given by a path. Each string is one name of the path, so dots in names need
no escape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from delta_core.actions import Metadata
from delta_core.dml.definition.change import commit_change
from delta_core.errors import ConstraintViolationError, SchemaError
from delta_core.run import DEFAULT_RUN, Run
from delta_core.scan.scan import Scan
from delta_core.schema import column_changes as changes
from delta_core.schema.column_changes import Position
from delta_core.schema.column_paths import display_path
from delta_core.schema.column_types import change_type as with_type
from delta_core.schema.column_uses import ColumnUse
from delta_core.schema.json import schema_to_json
from delta_core.schema.nullability import find_null_violations
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import DataType, StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.clustering_domain import ClusteringColumns
from delta_core.table_features.column_dependencies import column_uses
from delta_core.table_features.defaults import drop_default as without_default
from delta_core.table_features.defaults import set_default as with_default
from delta_core.table_features.upgrade import supported_features
from delta_core.transaction.commit_result import Committed

_ICEBERG = frozenset({"icebergCompatV1", "icebergCompatV2", "icebergCompatV3"})


def add_columns(
    snapshot: Snapshot,
    columns: Iterable[StructField],
    *,
    parent: Sequence[str] = (),
    position: Position | None = None,
    run: Run = DEFAULT_RUN,
) -> Committed:
    """Add nullable columns. Existing rows are null in them.

    Args:
        snapshot: the version of the table.
        columns: the new columns.
        parent: the path of the struct to add them to; empty for the table itself.
        position: the position of the first new column, which the others follow. None is the end.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        SchemaEvolutionError: a column already exists, is NOT NULL, or requires values that existing rows do
            not have.
    """
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    added = list(columns)
    changed = changes.add_columns(table_columns(snapshot), added, parent=parent, position=position)
    listed = [{"column": {"name": display_path((*parent, f.name)), "type": str(f.data_type)}} for f in added]
    return _commit(snapshot, changed, operation="ADD COLUMNS", parameters={"columns": listed}, run=run)


def rename_column(
    snapshot: Snapshot, column: Sequence[str], name: str, *, run: Run = DEFAULT_RUN
) -> Committed:
    """Rename a column. No file is rewritten, because the table has a column mapping.

    Raises:
        SchemaEvolutionError: the table has no column mapping, the column does not exist, the name is already
            used, or a CHECK constraint, invariant or generated column refers to the column.
        SchemaError: the name is not valid.
    """
    if not isinstance(name, str):
        raise SchemaError(
            f"The column {display_path(column)} cannot be renamed to {name!r}.",
            cause=f"The new name is of type {type(name).__name__}.",
            fix="Pass a string.",
        )
    parameters = {"oldColumnPath": display_path(column), "newColumnPath": display_path((*column[:-1], name))}
    return _change(
        snapshot,
        lambda columns: changes.rename_column(columns, column, name, uses=_uses(snapshot)),
        operation="RENAME COLUMN",
        parameters=parameters,
        run=run,
    )


def drop_columns(
    snapshot: Snapshot, columns: Sequence[Sequence[str]], *, run: Run = DEFAULT_RUN
) -> Committed:
    """Drop columns. Files keep the values, but readers ignore them, because the table has a column mapping.

    Raises:
        SchemaEvolutionError: the table has no column mapping, a column does not exist, is a partition column
            or the last column, or something refers to it.
    """
    return _change(
        snapshot,
        lambda current: changes.drop_columns(current, columns, uses=_uses(snapshot)),
        operation="DROP COLUMNS",
        parameters={"columns": [display_path(column) for column in columns]},
        run=run,
    )


def move_column(
    snapshot: Snapshot, column: Sequence[str], position: Position, *, run: Run = DEFAULT_RUN
) -> Committed:
    """Move a column to another position in its struct.

    Raises:
        SchemaEvolutionError: the column, or the column to place it after, does not exist.
    """
    sql_position = "FIRST" if isinstance(position, changes.First) else f"AFTER {position.column}"
    return _change(
        snapshot,
        lambda columns: changes.move_column(columns, column, position),
        operation="CHANGE COLUMN",
        parameters={"column": display_path(column), "position": sql_position},
        run=run,
    )


def set_comment(
    snapshot: Snapshot, column: Sequence[str], comment: str | None, *, run: Run = DEFAULT_RUN
) -> Committed:
    """Set the comment of a column; None removes it.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    return _change(
        snapshot,
        lambda columns: changes.set_comment(columns, column, comment),
        operation="CHANGE COLUMN",
        parameters={"column": display_path(column), "comment": comment},
        run=run,
    )


def drop_not_null(snapshot: Snapshot, column: Sequence[str], *, run: Run = DEFAULT_RUN) -> Committed:
    """Allow nulls in a column.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    return _change(
        snapshot,
        lambda columns: changes.drop_not_null(columns, column),
        operation="CHANGE COLUMN",
        parameters={"column": ".".join(column), "nullable": True},
        run=run,
    )


def set_not_null(snapshot: Snapshot, column: Sequence[str], *, run: Run = DEFAULT_RUN) -> Committed:
    """Make a column NOT NULL. Reads the column in the whole table.

    Raises:
        ConstraintViolationError: a row has a null in the column.
        SchemaEvolutionError: the column does not exist, or its default is null.
    """
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    changed = changes.set_not_null(table_columns(snapshot), column)
    for batch in Scan(snapshot, columns=[column[0]], allowed_roots=run.allowed_roots).to_batches():
        violations = find_null_violations(changed.schema, batch)
        if violations:
            first = violations[0]
            raise ConstraintViolationError(
                f"The column {display_path(column)} cannot be NOT NULL.",
                cause=f"{first.column} is null in at least {first.num_rows} existing rows of the table.",
                fix="Correct or delete these rows first.",
            )
    parameters = {"column": ".".join(column), "nullable": False}
    return _commit(
        snapshot, changed, operation="CHANGE COLUMN", parameters=parameters, reads_rows=True, run=run
    )


def change_type(
    snapshot: Snapshot, column: Sequence[str], data_type: DataType, *, run: Run = DEFAULT_RUN
) -> Committed:
    """Widen the type of a column, or of `element`, `key` or `value` in it. Files keep the old type.

    Raises:
        SchemaEvolutionError: the column does not exist, the change is not an allowed widening,
            `delta.enableTypeWidening` is not true, or something refers to the column.
    """
    iceberg = bool(_ICEBERG & supported_features(snapshot.protocol))
    return _change(
        snapshot,
        lambda columns: with_type(columns, column, data_type, uses=_uses(snapshot), iceberg=iceberg),
        operation="CHANGE COLUMN",
        parameters={"column": display_path(column), "type": str(data_type)},
        run=run,
    )


def set_default(snapshot: Snapshot, column: Sequence[str], text: str, *, run: Run = DEFAULT_RUN) -> Committed:
    """Set the default of a column, for later rows that lack the column.

    Raises:
        SchemaEvolutionError: the column does not exist.
        SchemaError: the column cannot have a default.
        ExpressionError: the SQL text does not give a constant of the column's type.
    """
    return _change(
        snapshot,
        lambda columns: replace(columns, schema=with_default(columns.schema, column, text)),
        operation="CHANGE COLUMN",
        parameters={"column": display_path(column), "default": text},
        run=run,
    )


def drop_default(snapshot: Snapshot, column: Sequence[str], *, run: Run = DEFAULT_RUN) -> Committed:
    """Remove the default of a column. The protocol keeps the feature.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    return _change(
        snapshot,
        lambda columns: replace(columns, schema=without_default(columns.schema, column)),
        operation="CHANGE COLUMN",
        parameters={"column": display_path(column), "default": None},
        run=run,
    )


def table_columns(snapshot: Snapshot) -> TableColumns:
    """The schema, partition columns and properties of a table, which column changes read and change."""
    return TableColumns(
        schema=snapshot.schema,
        partition_columns=tuple(snapshot.partition_columns),
        configuration=snapshot.metadata.configuration,
    )


def with_columns(metadata: Metadata, columns: TableColumns) -> Metadata:
    """The metadata with the schema, partition columns and properties of `columns`."""
    return replace(
        metadata,
        schema_string=schema_to_json(columns.schema),
        partition_columns=columns.partition_columns,
        configuration=dict(columns.configuration),
    )


def _change(
    snapshot: Snapshot,
    change: Callable[[TableColumns], TableColumns],
    *,
    operation: str,
    parameters: Mapping[str, Any],
    run: Run,
) -> Committed:
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    changed = change(table_columns(snapshot))
    return _commit(snapshot, changed, operation=operation, parameters=parameters, run=run)


def _commit(
    snapshot: Snapshot,
    columns: TableColumns,
    *,
    operation: str,
    parameters: Mapping[str, Any],
    reads_rows: bool = False,
    run: Run,
) -> Committed:
    return commit_change(
        snapshot,
        operation=operation,
        parameters=parameters,
        metadata=with_columns(snapshot.metadata, columns),
        reads_rows=reads_rows,
        run=run,
    )


def _uses(snapshot: Snapshot) -> tuple[ColumnUse, ...]:
    """The uses of the table's columns. Reads the metadata domains when the table may be clustered."""
    clustering = None
    if "clustering" in supported_features(snapshot.protocol):
        clustering = ClusteringColumns.of_domains(snapshot.domain_metadata)
    return column_uses(
        snapshot.schema,
        snapshot.metadata.configuration,
        clustering_columns=() if clustering is None else clustering.logical(snapshot.schema),
    )
