"""`QueryBuilder` of the `deltalake` package: SQL over tables, by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from delta_core.arguments import require_string
from delta_core.boundary import typed_iterator
from delta_core.deltalake._arrow import exported
from delta_core.deltalake.exceptions import compatible_class
from delta_core.deltalake.predicates import duckdb_sql
from delta_core.deltalake.schema import arrow_schema
from delta_core.deltalake.table import DeltaTable
from delta_core.errors import ConfigurationError, ExpressionError
from delta_core.table.conversions import imported_library

_NAME = r'(?:[A-Za-z_]\w*|"[^"]+")'
_PLAIN_QUERY = re.compile(
    rf"\s*select\s+(?P<columns>\*|{_NAME}(?:\s*,\s*{_NAME})*)\s+from\s+(?P<table>{_NAME})"
    r"(?P<rest>(?:\s+(?:where|order|limit)\b.*)?)\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_COMBINES = re.compile(r"\b(?:join|union|intersect|except|group|having|select)\b", re.IGNORECASE)


@compatible_class
class QueryBuilder:
    """SQL of DuckDB over registered tables. DuckDB must be installed (`deltaward[duckdb]`).

    DuckDB reads each table as the dataset of its version: filters and columns of the query decide which files
    and columns are read. Settings of a session are those of DuckDB.
    """

    def __init__(self, session_config: Mapping[str, str] | None = None) -> None:
        """Open a session in memory.

        Raises:
            ConfigurationError: DuckDB is not installed, or a setting is not one of DuckDB's.
        """
        duckdb = imported_library("duckdb")
        self._tables: dict[str, pa.Schema] = {}
        self._errors: type[Exception] = duckdb.Error
        # Settings of DataFusion have no meaning for DuckDB.
        config = {
            name: value
            for name, value in (session_config or {}).items()
            if not name.startswith("datafusion.")
        }
        try:
            self._connection = duckdb.connect(config=config)
        except duckdb.Error as error:
            raise ConfigurationError(
                "DuckDB refused the session's settings.", cause=str(error), fix="Pass settings of DuckDB."
            ) from error
        self._connection.execute(
            "SET produce_arrow_string_view = true; SET arrow_output_version = '1.4'; SET TimeZone = 'UTC'"
        )

    def register(self, table_name: str, delta_table: DeltaTable) -> QueryBuilder:
        """Make the version that a table shows available under a name."""
        opened = delta_table.delta_table if isinstance(delta_table, DeltaTable) else delta_table
        self._connection.register(table_name, opened.to_pyarrow_dataset())
        self._tables[table_name.casefold()] = arrow_schema(opened.schema())
        return self

    def execute(self, sql: str) -> Any:
        """The result of a query as a reader of batches.

        Raises:
            ExpressionError: the query is not valid, or fails.
        """
        sql = duckdb_sql(require_string(sql, what="query"))
        try:
            reader = self._connection.execute(sql).to_arrow_reader()
        except self._errors as error:
            raise ExpressionError(
                "The query failed.", cause=str(error), fix="Correct the query; it is SQL of DuckDB."
            ) from error
        return exported(_described(reader, _columns_of(sql, self._tables)))


def _columns_of(sql: str, tables: Mapping[str, pa.Schema]) -> list[pa.Field | None]:
    """For each column of the result, the column of a table that it repeats, or None.

    Empty, when the query is more than columns of one table: a join or a function could make other values.
    """
    found = _PLAIN_QUERY.fullmatch(sql)
    if found is None or _COMBINES.search(found["rest"]):
        return []
    schema = tables.get(found["table"].strip('"').casefold())
    if schema is None:
        return []
    if found["columns"] == "*":
        return list(schema)
    names = [name.strip().strip('"') for name in found["columns"].split(",")]
    return [schema.field(name) if name in schema.names else None for name in names]


def _described(reader: pa.RecordBatchReader, fields: list[pa.Field | None]) -> pa.RecordBatchReader:
    """The result, whose columns have the metadata of the table's, and are required where those are."""
    if len(fields) != len(reader.schema):
        return reader
    schema = pa.schema(
        [
            own
            if known is None or known.name != own.name
            else own.with_nullable(known.nullable).with_metadata(_own_metadata(known))
            for own, known in zip(reader.schema, fields, strict=True)
        ]
    )
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, typed_iterator(batches, doing="reading the result"))


def _own_metadata(field: pa.Field) -> dict[bytes, bytes]:
    """The metadata of the column, without its name and id in the files."""
    return {
        key: value
        for key, value in (field.metadata or {}).items()
        if not key.startswith((b"PARQUET:", b"delta.columnMapping."))
    }
