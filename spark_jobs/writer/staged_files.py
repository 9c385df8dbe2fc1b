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

from delta_core.actions import AddCdcFile, AddFile
from delta_core.data.file_writer import choose_compression
from delta_core.data.row_files import FileOptions, write_rows_to_files
from delta_core.data.write_plan import WritePlan
from delta_core.execution.limits import available_cpus
from delta_core.scan.record_batches import FileReader
from delta_core.schema.arrow import to_arrow
from delta_core.schema.types import StructField, StructType
from delta_core.storage import LogStore, resolve_data_path
from delta_core.transaction import num_records
from spark_jobs.engine_io import TableReach
from spark_jobs.writer.changed_rows import change_prefix
from spark_jobs.writer.data_writer import discard_prefix, remove_empty_directories

Positions = np.ndarray[Any, Any]
"""Row positions: ascending distinct integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFiles:
    """Data files below a prefix that only this job writes to.

    A row's position is its number among the rows of all files, in the order of `adds`.

    Attributes:
        reach: how Spark reaches the table.
        adds: the `add` actions that publish the files.
        changes: the actions of change data files.
        rows: the number of rows in all files.
        plan: the write plan of the table after the commit.
        high_water_marks: of the identity columns for which the rows have numbers.
    """

    reach: TableReach
    prefix: str
    adds: Sequence[AddFile]
    rows: int
    plan: WritePlan
    compression: str = "snappy"
    max_records_per_file: int | None = None
    changes: Sequence[AddCdcFile] = ()
    high_water_marks: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def schema(self) -> StructType:
        """The schema of the rows, including partition columns."""
        return self.plan.schema

    @property
    def partition_columns(self) -> Sequence[str]:
        """The names of the partition columns in the schema."""
        return self.plan.partition_columns

    @property
    def store(self) -> LogStore:
        """The table's store."""
        return self.reach.store

    def discard(self) -> None:
        """Delete all files of the job. A failed deletion is logged, and leaves them for a vacuum."""
        for prefix in self._prefixes():
            discard_prefix(self.store, prefix)

    def remove_empty_directories(self) -> None:
        """Remove the job's directories on a file system, if they are empty."""
        for prefix in self._prefixes():
            remove_empty_directories(self.store, prefix)

    def _prefixes(self) -> list[str]:
        return [self.prefix, *([change_prefix(self.prefix)] if self.changes else [])]

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
        reader = FileReader(
            schema=self.schema,
            columns=[field.name for field in self._fields(columns)],
            partition_columns=self.partition_columns,
            mapping=self.plan.mapping,
        )
        path = resolve_data_path(self.adds[index].path, root_uri=self.store.uri)
        return reader.read(self.store, path, self.adds[index].partition_values)

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
        adds = write_rows_to_files(
            self.store,
            pa.RecordBatchReader.from_batches(to_arrow(self.schema), remaining),
            plan=self.plan,
            options=FileOptions(
                directory=self.prefix,
                compression=choose_compression(self.compression, self.plan.properties),
                max_rows_per_file=self.max_records_per_file,
            ),
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
