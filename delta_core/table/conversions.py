"""The rows of an open table in the forms of other libraries: pandas, polars, and Arrow's datasets."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

# The modules of these packages load when a method needs them: opening a table must stay quick.
from delta_core import expressions, scan
from delta_core.arguments import name_list
from delta_core.boundary import public_class, typed_iterator
from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds
    import pyarrow.fs as pafs

    from delta_core.scan import Scan

Predicate = Expression | str | Sequence[Any]
"""Spark SQL text, an expression tree, or a list of tuples such as `[("x", ">", 1)]`."""


@public_class
class TableConversions(ABC):
    """The calls that read rows. The class of an open table has them."""

    _allowed_roots: tuple[LogStore, ...]

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The snapshot that the handle shows."""

    def count(self) -> int:
        """The number of rows.

        Reads no data file, except the footers of files without a row count in their statistics.

        Raises:
            UnsupportedTableFeatureError: the table cannot be read.
        """
        return scan.count_rows(self.snapshot, allowed_roots=self._allowed_roots)

    def partitions(self, filters: Predicate | None = None) -> list[dict[str, Any]]:
        """The partitions with live files: the values of the partition columns by name, in their types.

        Args:
            filters: a predicate; partitions without files that may match are left out.
        """
        return scan.live_partitions(self.snapshot, self._scan(None, filters, False))

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filters: Predicate | None = None,
        *,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
    ) -> pd.DataFrame:
        """The rows as a data frame of pandas, which must be installed.

        Args:
            columns: the columns to return, in this order; None returns all; a string is one column.
            filters: a predicate; files that cannot match are not read.
            types_mapper: a function from an Arrow type to a type of pandas, as in pyarrow's `to_pandas`.
        """
        return self._scan(columns, filters, False).to_table().to_pandas(types_mapper=types_mapper)

    def to_polars(self, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """The version as a lazy frame of polars, which must be installed.

        Filters on the frame skip files by partition values and statistics, and read only the columns that
        the query needs. For the kinds of tables that are read into memory see `to_pyarrow_dataset`.

        Args:
            columns: the columns of the frame, in this order; None takes all.
        """
        frame: pl.LazyFrame = imported_library("polars").scan_pyarrow_dataset(self.to_pyarrow_dataset())
        names = name_list(columns)
        return frame if names is None else frame.select(names)

    def to_pyarrow_dataset(
        self,
        filters: Predicate | None = None,
        *,
        schema: pa.Schema | None = None,
        filesystem: pafs.FileSystem | None = None,
        parquet_read_options: ds.ParquetReadOptions | None = None,
    ) -> ds.Dataset:
        """The version as a dataset of Arrow, for DuckDB, polars and others that push filters down.

        Arrow reads the data files, and skips files by their partition values and statistics. A table with
        deletion vectors, column mapping, widened types or files outside of its root is read into memory
        instead, since Arrow would return wrong rows.

        Args:
            filters: a predicate; files that cannot match are left out. Rows that do not match may remain.
            schema: the schema of the dataset; the table's when None.
            filesystem: opens the files, by paths relative to the table; the table's store when None.
            parquet_read_options: how Arrow reads the files.
        """
        return scan.arrow_dataset(
            self.snapshot,
            predicate=self._predicate(filters),
            schema=schema,
            filesystem=filesystem,
            read_options=parquet_read_options,
            allowed_roots=self._allowed_roots,
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow's C interface, for libraries that take such objects."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_reader(
        self, columns: Sequence[str] | None = None, filters: Predicate | None = None
    ) -> pa.RecordBatchReader:
        """The rows as a reader of record batches, in bounded memory. For the arguments see `to_pandas`."""
        rows = self._scan(columns, filters, False)
        return pa.RecordBatchReader.from_batches(
            rows.schema, typed_iterator(rows.to_batches(), doing="reading rows")
        )

    def _scan(self, columns: Sequence[str] | None, filters: Predicate | None, row_ids: bool) -> Scan:
        return scan.Scan(
            self.snapshot,
            predicate=self._predicate(filters),
            columns=name_list(columns),
            metadata_columns=scan.ROW_TRACKING_COLUMNS if row_ids else (),
            allowed_roots=self._allowed_roots,
        )

    def _predicate(self, filters: Predicate | None) -> Expression | str | None:
        if filters is None or isinstance(filters, str | Expression):
            return filters
        return expressions.from_dnf(filters)


def imported_library(name: str) -> Any:
    """An optional library.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"The library {name} is not installed.", cause=str(error), fix=f"Install {name}."
        ) from error
