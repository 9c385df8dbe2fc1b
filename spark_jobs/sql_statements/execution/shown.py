"""DESCRIBE and SHOW."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_core.errors import ConfigurationError, SchemaMismatchError, UnsupportedSqlError
from delta_core.expressions.render import quote_name, quote_string
from delta_core.schema.field_metadata import COMMENT_KEY, CURRENT_DEFAULT_KEY
from delta_core.schema.types import StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from spark_jobs.schema import to_spark, type_to_ddl
from spark_jobs.sql_statements.execution.results import frame_of
from spark_jobs.sql_statements.execution.surroundings import Surroundings, quoted
from spark_jobs.sql_statements.execution.upkeep import table_of
from spark_jobs.sql_statements.statements import (
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    Shown,
    ShowTable,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HIDDEN = ("delta.columnMapping.maxColumnId",)


def history(statement: DescribeHistory, around: Surroundings) -> DataFrame:
    """The commits of a table, newest first."""
    return table_of(statement.table, around).history(statement.limit)


def detail(statement: DescribeDetail, around: Surroundings) -> DataFrame:
    """The properties of a table in one row."""
    return table_of(statement.table, around).detail()


def describe(statement: DescribeTable, around: Surroundings) -> DataFrame:
    """The columns of a table, as Spark describes them."""
    address = around.find(statement.table)
    if address is None:
        around.require_all_allowed(f"{statement.table.name}, which is not a table of this library")
        return around.spark.sql(statement.sql)
    snapshot = around.snapshot(address.uri, statement.table)
    if statement.column is not None:
        return _describe_column(statement, snapshot, around)
    schema = "col_name string, data_type string, comment string"
    rows: list[tuple[Any, ...]] = [_row(field) for field in snapshot.schema]
    if snapshot.partition_columns:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [_row(field) for name in snapshot.partition_columns if (field := snapshot.schema.find(name))]
    if statement.extended:
        metadata = snapshot.metadata
        properties = ",".join(f"{key}={value}" for key, value in sorted(metadata.configuration.items()))
        rows += [
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            ("Name", address.name or quoted(statement.table), ""),
            ("Type", "MANAGED" if address.is_managed else "EXTERNAL", ""),
            ("Comment", metadata.description or "", ""),
            ("Location", snapshot.store.uri, ""),
            ("Provider", address.provider, ""),
            ("Table Properties", f"[{properties}]", ""),
        ]
    return frame_of(around.spark, schema, rows)


def _row(field: StructField) -> tuple[str, str, str | None]:
    return field.name, type_to_ddl(field.data_type), field.metadata.get(COMMENT_KEY)


def _describe_column(statement: DescribeTable, snapshot: Snapshot, around: Surroundings) -> DataFrame:
    assert statement.column is not None
    field = snapshot.schema.find(statement.column[0]) if len(statement.column) == 1 else None
    if field is None:
        raise SchemaMismatchError(
            f"The table has no column {'.'.join(statement.column)!r}.",
            cause=f"Its columns are {', '.join(snapshot.schema.names)}.",
            fix="Name a column of the table.",
        )
    name, data_type, comment = _row(field)
    rows = [("col_name", name), ("data_type", data_type), ("comment", comment or "NULL")]
    return frame_of(around.spark, "info_name string, info_value string", rows)


def show(statement: ShowTable, around: Surroundings) -> DataFrame:
    """A part of a table's definition."""
    address = around.find(statement.table)
    if address is None:
        around.require_all_allowed(f"{statement.table.name}, which is not a table of this library")
        return around.spark.sql(statement.sql)
    snapshot = around.snapshot(address.uri, statement.table)
    match statement.what:
        case Shown.PROPERTIES:
            return _properties(statement, snapshot, around)
        case Shown.COLUMNS:
            return frame_of(around.spark, "col_name string", [(name,) for name in snapshot.schema.names])
        case Shown.PARTITIONS:
            return _partitions(statement, snapshot, around)
        case Shown.CREATE:
            created = create_statement(statement.table.name, snapshot)
            return frame_of(around.spark, "createtab_stmt string", [(created,)])


def _properties(statement: ShowTable, snapshot: Snapshot, around: Surroundings) -> DataFrame:
    found = dict(snapshot.metadata.configuration)
    found["delta.minReaderVersion"] = str(snapshot.protocol.min_reader_version)
    found["delta.minWriterVersion"] = str(snapshot.protocol.min_writer_version)
    if statement.key is not None:
        missing = f"Table {statement.table.name} does not have property: {statement.key}"
        rows = [(statement.key, found.get(statement.key, missing))]
    else:
        rows = sorted(found.items())
    return frame_of(around.spark, "key string, value string", rows)


def _partitions(statement: ShowTable, snapshot: Snapshot, around: Surroundings) -> DataFrame:
    names = list(snapshot.partition_columns)
    if not names:
        raise ConfigurationError(
            f"The table {statement.table.name} has no partitions.",
            cause="It has no partition columns.",
            fix="Select from the table, or show the partitions of another one.",
        )
    actions = around.core(snapshot.store.uri).get_add_actions(flatten=True)
    columns = [actions.column(f"partition.{name}").to_pylist() for name in names]
    rows = sorted(set(zip(*columns, strict=True)), key=lambda row: [(v is None, str(v)) for v in row])
    fields = tuple(field for name in names if (field := snapshot.schema.find(name)) is not None)
    return around.spark.createDataFrame(rows, to_spark(type(snapshot.schema)(fields)))


def create_statement(name: str, snapshot: Snapshot) -> str:
    """The statement that creates a table with the same definition.

    Raises:
        UnsupportedSqlError: a column has a definition that SQL cannot express.
    """
    lines = [_column_sql(field, snapshot) for field in snapshot.schema]
    parts = [f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + ")\nUSING deltaward"]
    if snapshot.partition_columns:
        parts.append(f"PARTITIONED BY ({', '.join(map(quote_name, snapshot.partition_columns))})")
    clustering = clustering_of(snapshot)
    if clustering is not None:
        columns = [".".join(map(quote_name, path.split("."))) for path in clustering.names(snapshot.schema)]
        parts.append(f"CLUSTER BY ({', '.join(columns)})" if columns else "")
    parts.append(f"LOCATION {quote_string(snapshot.store.uri)}")
    if snapshot.metadata.description:
        parts.append(f"COMMENT {quote_string(snapshot.metadata.description)}")
    properties = [
        f"{quote_string(key)} = {quote_string(value)}"
        for key, value in sorted(snapshot.metadata.configuration.items())
        if not key.startswith(_HIDDEN)
    ]
    if properties:
        parts.append("TBLPROPERTIES (\n  " + ",\n  ".join(properties) + ")")
    return "\n".join(part for part in parts if part)


def _column_sql(field: StructField, snapshot: Snapshot) -> str:
    if any(key.startswith("delta.identity.") for key in field.metadata):
        start = int(field.metadata["delta.identity.start"])
        step = int(field.metadata["delta.identity.step"])
        kind = "BY DEFAULT" if field.metadata.get("delta.identity.allowExplicitInsert") else "ALWAYS"
        source = f" GENERATED {kind} AS IDENTITY (START WITH {start} INCREMENT BY {step})"
    elif expression := _generation(field, snapshot):
        source = f" GENERATED ALWAYS AS ({expression})"
    else:
        default = field.metadata.get(CURRENT_DEFAULT_KEY)
        source = "" if default is None else f" DEFAULT {default}"
    comment = field.metadata.get(COMMENT_KEY)
    return (
        f"{quote_name(field.name)} {type_to_ddl(field.data_type).upper()}"
        + ("" if field.nullable else " NOT NULL")
        + source
        + ("" if comment is None else f" COMMENT {quote_string(comment)}")
    )


def _generation(field: StructField, snapshot: Snapshot) -> str | None:
    expression = field.metadata.get("delta.generationExpression")
    if expression is None:
        return None
    if not isinstance(expression, str):
        raise UnsupportedSqlError(
            f"The generated column {field.name} cannot be shown.",
            cause="Its expression is not a string.",
            fix="Repair the table's schema.",
        )
    return expression
