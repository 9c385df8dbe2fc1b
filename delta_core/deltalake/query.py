"""`QueryBuilder` of the `deltalake` package: SQL over tables, by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_core.deltalake._arrow import exported
from delta_core.deltalake.exceptions import compatible_class
from delta_core.deltalake.table import DeltaTable
from delta_core.errors import ConfigurationError, ExpressionError
from delta_core.table.conversions import imported_library


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
        return self

    def execute(self, sql: str) -> Any:
        """The result of a query as a reader of batches.

        Raises:
            ExpressionError: the query is not valid, or fails.
        """
        try:
            return exported(self._connection.execute(sql).to_arrow_reader())
        except self._errors as error:
            raise ExpressionError(
                "The query failed.", cause=str(error), fix="Correct the query; it is SQL of DuckDB."
            ) from error
