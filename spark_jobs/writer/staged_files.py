"""The files that a write has staged and not committed: reading their rows, and removing rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_core.actions import AddFile
from delta_core.data.file_writer import choose_compression
from delta_core.data.row_files import write_data_files
from delta_core.execution.limits import available_cpus
from delta_core.scan.record_batches import read_file
from delta_core.schema.arrow import to_arrow
from delta_core.schema.types import StructField, StructType
from delta_core.storage import LogStore, resolve_data_path
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction import num_records
from spark_jobs.engine_io import TableReach

Positions = np.ndarray[Any, Any]
"""Row positions: ascending distinct integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFiles:
    """Data files below a prefix that only this job writes to.

    A row's position is its number among the rows of all files, in the order of `adds`.

    Attributes:
        reach: how Spark reaches the table.
        adds: the `add` actions that publish the files.
        rows: the number of rows in all files.
        schema: the schema of the rows, including partition columns.
        configuration: the table's properties.
    """

    reach: TableReach
    prefix: str
    adds: Sequence[AddFile]
    rows: int
    schema: StructType
    partition_columns: Sequence[str]
    configuration: Mapping[str, str] = field(default_factory=dict, hash=False)
    compression: str = "snappy"

    @property
    def store(self) -> LogStore:
        """The table's store."""
        return self.reach.store

    def paths(self) -> list[str]:
        """The files' paths relative to the table, decoded."""
        return [resolve_data_path(add.path, root_uri=self.store.uri) for add in self.adds]

    def first_positions(self) -> list[int]:
        """The position of each file's first row, and at the end the number of all rows."""
        return [0, *accumulate(self._row_count(index) for index in range(len(self.adds)))]

    def batches(self, index: int, *, columns: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one file, in order, with the table's columns and types.

        Args:
            index: the index of the file.
            columns: the columns to read; None for all.
        """
        return read_file(
            self.store,
            resolve_data_path(self.adds[index].path, root_uri=self.store.uri),
            schema=self.schema,
            columns=[field.name for field in self._fields(columns)],
            partition_values=self.adds[index].partition_values,
            partition_columns=self.partition_columns,
        )

    def to_table(self, *, columns: Collection[str] | None = None) -> pa.Table:
        """All rows in memory, by position. `columns` None reads all columns."""
        parts = [batch for index in range(len(self.adds)) for batch in self.batches(index, columns=columns)]
        return pa.Table.from_batches(parts, schema=self._arrow_schema(columns))

    def take(self, positions: Positions, *, columns: Collection[str] | None = None) -> pa.Table:
        """The rows at ascending positions. `columns` None reads all columns.

        Reads only the files that contain such rows.
        """
        parts = [
            batch.filter(mask)
            for index, local in self._by_file(positions)
            for batch, mask in self._masked(index, local, columns=columns)
        ]
        return pa.Table.from_batches(parts, schema=self._arrow_schema(columns))

    def without(self, positions: Positions) -> StagedFiles:
        """The staged files without the rows at ascending positions.

        Only files that contain such a row are rewritten, and their old files are deleted. The other files
        stay unchanged. Memory is bounded by one row group per thread.
        """
        kept: dict[int, list[AddFile]] = {index: [add] for index, add in enumerate(self.adds)}
        touched = list(self._by_file(positions))
        with ThreadPoolExecutor(available_cpus(), thread_name_prefix="deltaward") as pool:
            written = pool.map(lambda file: self._rewrite_without(*file), touched)
            for (index, _), adds in zip(touched, written, strict=True):
                kept[index] = adds
        return replace(
            self,
            adds=[add for index in range(len(self.adds)) for add in kept[index]],
            rows=self.rows - len(positions),
        )

    def _rewrite_without(self, index: int, local: Positions) -> list[AddFile]:
        """Write one file's other rows to new files below the prefix, and delete the file."""
        remaining = (batch.filter(pc.invert(mask)) for batch, mask in self._masked(index, local))
        properties = TableProperties.of(self.configuration)
        adds = write_data_files(
            self.store,
            pa.RecordBatchReader.from_batches(to_arrow(self.schema), remaining),
            schema=self.schema,
            partition_columns=self.partition_columns,
            properties=properties,
            directory=self.prefix,
            compression=choose_compression(self.compression, properties),
        )
        self.store.delete(resolve_data_path(self.adds[index].path, root_uri=self.store.uri))
        return adds

    def _row_count(self, index: int) -> int:
        recorded = num_records(self.adds[index])
        if recorded is not None:
            return recorded
        path = resolve_data_path(self.adds[index].path, root_uri=self.store.uri)
        with self.store.open_input(path) as source:
            return int(pq.read_metadata(source).num_rows)

    def _by_file(self, positions: Positions) -> Iterator[tuple[int, Positions]]:
        """(file index, positions in the file) for the files that contain any of the positions."""
        first = self.first_positions()
        bounds = np.searchsorted(positions, first)
        for index, (start, end) in enumerate(pairwise(bounds)):
            if end > start:
                yield index, positions[start:end] - first[index]

    def _fields(self, columns: Collection[str] | None) -> list[StructField]:
        chosen = [field for field in self.schema if columns is None or field.name in columns]
        # A read without columns would return no row count, so read one column.
        return chosen or list(self.schema)[:1]

    def _arrow_schema(self, columns: Collection[str] | None) -> pa.Schema:
        return to_arrow(StructType(tuple(self._fields(columns))))

    def _masked(
        self, index: int, local: Positions, *, columns: Collection[str] | None = None
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Each batch of a file with a mask that is true at the positions."""
        done = 0
        for batch in self.batches(index, columns=columns):
            mask = np.zeros(batch.num_rows, dtype=bool)
            start, end = np.searchsorted(local, [done, done + batch.num_rows])
            mask[local[start:end] - done] = True
            done += batch.num_rows
            yield batch, pa.array(mask)
