"""INSERT, DELETE, UPDATE and MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_core.errors import ConfigurationError, SchemaMismatchError, UnsupportedSqlError
from delta_core.expressions.render import quote_name
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.dml.clauses import MergeClause, MergeClauses
from spark_jobs.dml.delete import delete
from spark_jobs.dml.merge import merge
from spark_jobs.dml.update import update
from spark_jobs.sql_statements.execution.assignment import assigned
from spark_jobs.sql_statements.execution.queries import query_frame, source_frame
from spark_jobs.sql_statements.execution.results import affected_rows, frame_of, metrics_of, no_rows
from spark_jobs.sql_statements.execution.surroundings import Surroundings
from spark_jobs.sql_statements.statements import (
    Delete,
    Insert,
    InsertMode,
    Merge,
    Query,
    TableReference,
    Update,
)
from spark_jobs.writer.write import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def insert(statement: Insert, around: Surroundings) -> DataFrame:
    """Insert the rows of a query."""
    address = around.find(statement.table)
    if address is None:
        return _insert_elsewhere(statement, around)
    snapshot = around.snapshot(address.uri, statement.table)
    schema = snapshot.schema
    frame = _named(statement, query_frame(statement.query, around), schema)
    fixed = [name for name, value in statement.partition if value is not None]
    frame = assigned(_with_partition(statement, frame, schema), schema, from_strings=fixed)
    options = _mode(statement, snapshot, around)
    if statement.if_not_exists and _has_rows(snapshot, options.get("replace_where"), around):
        return no_rows(around.spark)
    write(
        frame,
        address.uri,
        **options,
        merge_schema=statement.schema_evolution,
        storage_options=around.storage_options,
        engine_io=around.engine_io,
        user_metadata=around.commit.user_metadata,
        txn=around.commit.txn,
        clock=around.clock,
    )
    return no_rows(around.spark)


def _insert_elsewhere(statement: Insert, around: Surroundings) -> DataFrame:
    """An insert into a table of Spark, which may read our tables."""
    around.require_all_allowed(f"{statement.table.name}, which is not a table of this library")
    if statement.table.path is not None or not statement.sql:
        around.address(statement.table)
    return query_frame(
        Query(
            sql=statement.sql,
            start=statement.start,
            tables=statement.query.tables,
            parameters=statement.query.parameters,
            positional=statement.query.positional,
        ),
        around,
    )


def _named(statement: Insert, frame: DataFrame, schema: StructType) -> DataFrame:
    """The query's rows with the names of the table's columns."""
    fixed = {name.casefold() for name, value in statement.partition if value is not None}
    if statement.by_name:
        return frame
    names = list(statement.columns) if statement.columns is not None else None
    if names is None:
        names = [field.name for field in schema if field.name.casefold() not in fixed]
    unknown = [name for name in names if schema.find(name) is None]
    if unknown and not statement.schema_evolution:
        raise SchemaMismatchError(
            f"The table has no column {', '.join(map(repr, unknown))}.",
            cause=f"Its columns are {', '.join(schema.names)}.",
            fix="Correct the list of columns, or use INSERT WITH SCHEMA EVOLUTION.",
        )
    names = [found.name if (found := schema.find(name)) is not None else name for name in names]
    if len({name.casefold() for name in names}) != len(names):
        raise ConfigurationError(
            "A column is named twice in the list of INSERT.", fix="Name each column once."
        )
    if len(frame.columns) != len(names):
        raise SchemaMismatchError(
            f"The query has {len(frame.columns)} columns, and INSERT needs {len(names)}.",
            cause=f"The columns to be filled are {', '.join(names)}.",
            fix="Add the missing columns, or list the columns to fill after the table: INSERT INTO t (a).",
        )
    return frame.toDF(*names)


def _with_partition(statement: Insert, frame: DataFrame, schema: StructType) -> DataFrame:
    """The rows with the constants of `PARTITION (name = constant)`."""
    from pyspark.sql import functions as fn

    for name, value in statement.partition:
        field = schema.find(name)
        if field is None:
            raise SchemaMismatchError(
                f"The table has no column {name!r}.", fix="Name partition columns of the table."
            )
        if value is not None:
            frame = frame.withColumn(field.name, fn.expr(value))
    return frame


def _mode(statement: Insert, snapshot: Snapshot, around: Surroundings) -> dict[str, Any]:
    if statement.mode is InsertMode.APPEND:
        return {"mode": "append"}
    if statement.replace_where is not None:
        return {"mode": "overwrite", "replace_where": statement.replace_where.sql}
    if statement.mode is InsertMode.REPLACE_USING:
        return _replace_using(statement, snapshot)
    fixed = [(name, value) for name, value in statement.partition if value is not None]
    dynamic = (around.spark.conf.get(_OVERWRITE_MODE, "static") or "").lower() == "dynamic"
    if fixed and not (dynamic and len(fixed) < len(statement.partition)):
        condition = " AND ".join(
            f"{quote_name(name)} {'IS' if value.upper() == 'NULL' else '='} {value}" for name, value in fixed
        )
        return {"mode": "overwrite", "replace_where": condition}
    if dynamic and snapshot.partition_columns:
        return {"mode": "overwrite", "partition_overwrite_mode": "dynamic"}
    return {"mode": "overwrite"}


def _replace_using(statement: Insert, snapshot: Snapshot) -> dict[str, Any]:
    """The options by which the partitions that have new rows are replaced."""
    using = {name.casefold() for name in statement.replace_using}
    if using != {name.casefold() for name in snapshot.partition_columns}:
        raise UnsupportedSqlError(
            f"REPLACE USING ({', '.join(statement.replace_using)}) is not supported.",
            cause="Only the partition columns of the table, all of them, select the rows to be replaced: "
            f"{', '.join(snapshot.partition_columns) or 'it has none'}.",
            fix="Use the partition columns, REPLACE WHERE with a condition, or MERGE.",
        )
    return {"mode": "overwrite", "partition_overwrite_mode": "dynamic"}


def _has_rows(snapshot: Snapshot, condition: str | None, around: Surroundings) -> bool:
    """Whether the partition has rows, for `INSERT OVERWRITE ... IF NOT EXISTS`."""
    if condition is None:
        raise UnsupportedSqlError(
            "IF NOT EXISTS is not supported without constants for the partition.",
            fix="Write INSERT OVERWRITE t PARTITION (name = constant) IF NOT EXISTS ...",
        )
    batches = around.core(snapshot.store.uri).to_batches(
        columns=[snapshot.schema.names[0]], filters=condition
    )
    return any(batch.num_rows for batch in batches)


def delete_rows(statement: Delete, around: Surroundings) -> DataFrame:
    """Delete rows."""
    result = delete(
        around.spark,
        around.uri(statement.table),
        None if statement.where is None else statement.where.sql,
        alias=statement.alias or _last(statement.table),
        **_options(around),
    )
    return affected_rows(around.spark, result, "numDeletedRows")


def update_rows(statement: Update, around: Surroundings) -> DataFrame:
    """Update rows."""
    result = update(
        around.spark,
        around.uri(statement.table),
        dict(statement.assignments),
        None if statement.where is None else statement.where.sql,
        alias=statement.alias or _last(statement.table),
        **_options(around),
    )
    return affected_rows(around.spark, result, "numUpdatedRows")


def merge_rows(statement: Merge, around: Surroundings) -> DataFrame:
    """Merge the rows of a table or a query."""
    uri = around.uri(statement.table)
    source = source_frame(statement.source, around)
    if statement.source_columns:
        source = _renamed(source, statement.source_columns)
    alias = statement.source_alias
    if alias is None and isinstance(statement.source, TableReference):
        alias = _last(statement.source)
    if alias is not None:
        source = source.alias(alias)
    result = merge(
        around.spark,
        uri,
        source,
        statement.on.sql,
        MergeClauses(
            **{
                name: tuple(
                    MergeClause(action=item.action, condition=item.condition, values=item.values)
                    for item in items
                )
                for name, items in statement.clauses.items()
            }
        ),
        merge_schema=statement.schema_evolution,
        alias=statement.alias or _last(statement.table),
        **_options(around),
    )
    found = metrics_of(result)
    counts = [int(found.get(f"numTargetRows{kind}", 0)) for kind in ("Updated", "Deleted", "Inserted")]
    schema = (
        "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, num_inserted_rows bigint"
    )
    return frame_of(around.spark, schema, [(sum(counts), *counts)])


def _renamed(source: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """The rows of a source with other names, as `AS s(a, b)` gives them."""
    if len(names) != len(source.columns):
        raise SchemaMismatchError(
            f"The source has {len(source.columns)} columns, and {len(names)} names after its alias.",
            fix="Give each column of the source one name.",
        )
    return source.toDF(*names)


def _last(table: TableReference) -> str | None:
    """The name of the table without its database, by which expressions may refer to it."""
    return None if table.path is not None else table.parts[-1]


def _options(around: Surroundings) -> dict[str, Any]:
    return {
        "storage_options": around.storage_options,
        "allowed_roots": around.allowed_roots,
        "engine_io": around.engine_io,
        "commit_properties": around.commit,
    }
