"""Changes of a table's columns that leave its files alone.

Which change is allowed is `schema.column_changes`' and `schema.column_types`' to say, and what refers to a
column `table_features.column_dependencies`'; here they meet the snapshot and become one commit each. Columns
are named by a path: a text is one part of it, so dots in names need no escape.
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
from delta_core.schema.column_paths import shown
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
    """Add nullable columns; existing rows are null in them.

    Args:
        snapshot: the table.
        columns: the new ones.
        parent: path of the struct that they go into; empty for the table itself.
        position: where the first of them goes, the others follow it; None is at the end.
        options: those of the commit.

    Raises:
        SchemaEvolutionError: a column exists, or is NOT NULL, or asks for values that existing rows lack.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    added = list(columns)
    changed = changes.add_columns(table_columns(snapshot), added, parent=parent, position=position)
    listed = [{"column": {"name": shown((*parent, f.name)), "type": str(f.data_type)}} for f in added]
    return _commit(snapshot, changed, operation="ADD COLUMNS", parameters={"columns": listed}, **options)


def rename_column(snapshot: Snapshot, column: Sequence[str], name: str, **options: Any) -> Committed:
    """Call a column otherwise. Files are not touched: the table has a column mapping.

    Raises:
        SchemaEvolutionError: no mapping, no such column, a name that is taken, or a CHECK constraint,
            invariant or generated column that names the column.
        SchemaError: a name that is not allowed.
    """
    if not isinstance(name, str):
        raise SchemaError(
            f"Column {shown(column)} cannot be called {name!r}", cause="It is no text", fix="Pass a name"
        )
    parameters = {"oldColumnPath": shown(column), "newColumnPath": shown((*column[:-1], name))}
    return _change(
        snapshot,
        lambda columns: changes.rename_column(columns, column, name, uses=_uses(snapshot)),
        operation="RENAME COLUMN",
        parameters=parameters,
        **options,
    )


def drop_columns(snapshot: Snapshot, columns: Sequence[Sequence[str]], **options: Any) -> Committed:
    """Drop columns. Files keep their values, which nobody sees any more; the table has a column mapping.

    Raises:
        SchemaEvolutionError: no mapping, no such column, the last one, a partition column, or one that
            something names.
    """
    return _change(
        snapshot,
        lambda known: changes.drop_columns(known, columns, uses=_uses(snapshot)),
        operation="DROP COLUMNS",
        parameters={"columns": [shown(column) for column in columns]},
        **options,
    )


def move_column(snapshot: Snapshot, column: Sequence[str], position: Position, **options: Any) -> Committed:
    """Give a column another place in its struct.

    Raises:
        SchemaEvolutionError: no such column or neighbour.
    """
    place = "FIRST" if isinstance(position, changes.First) else f"AFTER {position.column}"
    return _change(
        snapshot,
        lambda columns: changes.move_column(columns, column, position),
        operation="CHANGE COLUMN",
        parameters={"column": shown(column), "position": place},
        **options,
    )


def set_comment(snapshot: Snapshot, column: Sequence[str], comment: str | None, **options: Any) -> Committed:
    """Comment a column; None takes its comment away.

    Raises:
        SchemaEvolutionError: no such column.
    """
    return _change(
        snapshot,
        lambda columns: changes.set_comment(columns, column, comment),
        operation="CHANGE COLUMN",
        parameters={"column": shown(column), "comment": comment},
        **options,
    )


def drop_not_null(snapshot: Snapshot, column: Sequence[str], **options: Any) -> Committed:
    """Let a column, given by its path, hold nulls.

    Raises:
        SchemaEvolutionError: no such column.
    """
    return _change(
        snapshot,
        lambda columns: changes.drop_not_null(columns, column),
        operation="CHANGE COLUMN",
        parameters={"column": ".".join(column), "nullable": True},
        **options,
    )


def set_not_null(snapshot: Snapshot, column: Sequence[str], **options: Any) -> Committed:
    """Let a column hold no nulls from now on. Reads the column in the whole table.

    Raises:
        ConstraintViolationError: a row has a null in it.
        SchemaEvolutionError: no such column, or a default of null.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    changed = changes.set_not_null(table_columns(snapshot), column)
    for batch in Scan(snapshot, columns=[column[0]]).to_batches():
        found = find_null_violations(changed.schema, batch)
        if found:
            raise ConstraintViolationError(
                f"Column {shown(column)} cannot be NOT NULL",
                cause=f"{found[0].column} is null in at least {found[0].num_rows} rows that the table has",
                fix="Correct or delete these rows first",
            )
    parameters = {"column": ".".join(column), "nullable": False}
    return _commit(
        snapshot, changed, operation="CHANGE COLUMN", parameters=parameters, reads_rows=True, **options
    )


def change_type(snapshot: Snapshot, column: Sequence[str], data_type: DataType, **options: Any) -> Committed:
    """Widen the type of a column, or of `element`, `key` or `value` below it; files keep the old one.

    Raises:
        SchemaEvolutionError: no such column, no widening that a writer may do, `delta.enableTypeWidening`
            is not true, or something names the column.
    """
    iceberg = bool(_ICEBERG & supported_features(snapshot.protocol))
    return _change(
        snapshot,
        lambda columns: with_type(columns, column, data_type, uses=_uses(snapshot), iceberg=iceberg),
        operation="CHANGE COLUMN",
        parameters={"column": shown(column), "type": str(data_type)},
        **options,
    )


def set_default(snapshot: Snapshot, column: Sequence[str], text: str, **options: Any) -> Committed:
    """Give a column a default, for rows that come later and lack the column.

    Raises:
        SchemaEvolutionError: no such column.
        SchemaError: a column that cannot have one.
        ExpressionError: the text is no constant of the column's type.
    """
    return _change(
        snapshot,
        lambda columns: replace(columns, schema=with_default(columns.schema, column, text)),
        operation="CHANGE COLUMN",
        parameters={"column": shown(column), "default": text},
        **options,
    )


def drop_default(snapshot: Snapshot, column: Sequence[str], **options: Any) -> Committed:
    """Take a column's default away; the protocol keeps the feature.

    Raises:
        SchemaEvolutionError: no such column.
    """
    return _change(
        snapshot,
        lambda columns: replace(columns, schema=without_default(columns.schema, column)),
        operation="CHANGE COLUMN",
        parameters={"column": shown(column), "default": None},
        **options,
    )


def table_columns(snapshot: Snapshot) -> TableColumns:
    """The part of a table that changes of columns read and change."""
    return TableColumns(
        schema=snapshot.schema,
        partition_columns=tuple(snapshot.partition_columns),
        configuration=snapshot.metadata.configuration,
    )


def with_columns(metadata: Metadata, columns: TableColumns) -> Metadata:
    """The metadata with all three parts of changed columns."""
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
    """What names the table's columns. Reads the log's domains where the table may be clustered."""
    clustering = None
    if "clustering" in supported_features(snapshot.protocol):
        clustering = ClusteringColumns.of_domains(snapshot.domain_metadata)
    return column_uses(
        snapshot.schema,
        snapshot.metadata.configuration,
        clustering_columns=() if clustering is None else clustering.logical(snapshot.schema),
    )
