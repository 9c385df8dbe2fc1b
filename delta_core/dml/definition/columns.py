"""Changes of a table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from delta_core.dml.definition.change import applied_before, commit_change, with_schema
from delta_core.schema.evolution import add_columns as with_columns
from delta_core.schema.evolution import drop_not_null as without_not_null
from delta_core.schema.evolution import validate_schema
from delta_core.schema.types import StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_result import Committed


def add_columns(snapshot: Snapshot, columns: Iterable[StructField], **options: Any) -> Committed:
    """Add nullable columns at the end of the schema; existing rows are null in them.

    Raises:
        SchemaEvolutionError: a column exists or is not nullable.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    added = list(columns)
    schema = with_columns(snapshot.schema, added)
    validate_schema(schema, snapshot.partition_columns)
    parameters = {"columns": [{"column": {"name": f.name, "type": str(f.data_type)}} for f in added]}
    metadata = with_schema(snapshot, schema)
    return commit_change(
        snapshot, operation="ADD COLUMNS", parameters=parameters, metadata=metadata, **options
    )


def drop_not_null(snapshot: Snapshot, column: Sequence[str], **options: Any) -> Committed:
    """Let a column, given by its path, hold nulls.

    Raises:
        SchemaEvolutionError: no such column.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    schema = without_not_null(snapshot.schema, column)
    parameters = {"column": ".".join(column), "nullable": True}
    metadata = with_schema(snapshot, schema)
    return commit_change(
        snapshot, operation="CHANGE COLUMN", parameters=parameters, metadata=metadata, **options
    )
