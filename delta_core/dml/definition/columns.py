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
from delta_core.dml.definition.change import applied_before, commit_change
from delta_core.errors import ConstraintViolationError, SchemaError
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
    **options: Any,
) -> Committed:
    """Add nullable columns. Existing rows are null in them.

    Args:
        snapshot: the version of the table.
        columns: the new columns.
        parent: the path of the struct to add them to; empty for the table itself.
        position: the position of the first new column, which the others follow. None is the end.
        options: the options of the commit.

    Raises:
        SchemaEvolutionError: a column already exists, is NOT NULL, or requires values that existing rows do
            not have.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    added = list(columns)
    changed = changes.add_columns(table_columns(snapshot), added, parent=parent, position=position)
    listed = [{"column": {"name": display_path((*parent, f.name)), "type": str(f.data_type)}} for f in added]
    return _commit(snapshot, changed, operation="ADD COLUMNS", parameters={"columns": listed}, **options)


def rename_column(snapshot: Snapshot, column: Sequence[str], name: str, **options: Any) -> Committed:
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
        **options,
    )


def drop_columns(snapshot: Snapshot, columns: Sequence[Sequence[str]], **options: Any) -> Committed:
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
        **options,
    )


def move_column(snapshot: Snapshot, column: Sequence[str], position: Position, **options: Any) -> Committed:
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
        **options,
    )


def set_comment(snapshot: Snapshot, column: Sequence[str], comment: str | None, **options: Any) -> Committed:
    """Set the comment of a column; None removes it.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    return _change(
        snapshot,
        lambda columns: changes.set_comment(columns, column, comment),
        operation="CHANGE COLUMN",
        parameters={"column": display_path(column), "comment": comment},
        **options,
    )


def drop_not_null(snapshot: Snapshot, column: Sequence[str], **options: Any) -> Committed:
    """Allow nulls in a column.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    return _change(
        snapshot,
        lambda columns: changes.drop_not_null(columns, column),
        operation="CHANGE COLUMN",
        parameters={"column": ".".join(column), "nullable": True},
        **options,
    )


def set_not_null(snapshot: Snapshot, column: Sequence[str], **options: Any) -> Committed:
    """Make a column NOT NULL. Reads the column in the whole table.

    Raises:
        ConstraintViolationError: a row has a null in the column.
        SchemaEvolutionError: the column does not exist, or its default is null.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    changed = changes.set_not_null(table_columns(snapshot), column)
    for batch in Scan(snapshot, columns=[column[0]]).to_batches():
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
        snapshot, changed, operation="CHANGE COLUMN", parameters=parameters, reads_rows=True, **options
    )


def change_type(snapshot: Snapshot, column: Sequence[str], data_type: DataType, **options: Any) -> Committed:
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
        **options,
    )


def set_default(snapshot: Snapshot, column: Sequence[str], text: str, **options: Any) -> Committed:
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
        **options,
    )


def drop_default(snapshot: Snapshot, column: Sequence[str], **options: Any) -> Committed:
    """Remove the default of a column. The protocol keeps the feature.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    return _change(
        snapshot,
        lambda columns: replace(columns, schema=without_default(columns.schema, column)),
        operation="CHANGE COLUMN",
        parameters={"column": display_path(column), "default": None},
        **options,
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
    **options: Any,
) -> Committed:
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    changed = change(table_columns(snapshot))
    return _commit(snapshot, changed, operation=operation, parameters=parameters, **options)


def _commit(
    snapshot: Snapshot,
    columns: TableColumns,
    *,
    operation: str,
    parameters: Mapping[str, Any],
    **options: Any,
) -> Committed:
    return commit_change(
        snapshot,
        operation=operation,
        parameters=parameters,
        metadata=with_columns(snapshot.metadata, columns),
        **options,
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
