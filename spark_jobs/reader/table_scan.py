"""Files of a table's log as a DataFrame: grouped by how they are read, and united.

Where Spark reaches the table natively, its own scan reads the files, except those with names that it would
skip or cannot open. All others are read through Arrow. Both have every feature of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

from delta_core.deletion_vectors.file_update import rows_in_footer
from delta_core.expressions.ast import Expression
from delta_core.scan.record_batches import output_fields
from delta_core.scan.scan import canonical_names
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping
from delta_core.schema.partition_values import parse, serialize
from delta_core.schema.types import LONG, STRING, StructField, StructType
from delta_core.storage import LogStore
from delta_core.storage.parallel import parallel
from spark_jobs.engine_io import TableReach
from spark_jobs.expressions.columns import quoted
from spark_jobs.expressions.predicates import to_column
from spark_jobs.file_uris import ROW_INDEX, is_unreadable
from spark_jobs.reader.arrow_scan import arrow_scan
from spark_jobs.reader.data_files import DataFiles, PartitionTuple
from spark_jobs.reader.native_scan import native_scan
from spark_jobs.reader.row_masks import RowMasks
from spark_jobs.reader.table_files import LocatedFile, TableFile, located_files
from spark_jobs.schema import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_ROWS = 1 << 31
"""A larger number of rows in the log is not believed: masks take memory by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """How the files of a table are read.

    Attributes:
        reach: how Spark reaches the table.
        schema: the columns of the rows.
        mapping: the names and ids of the columns in the files.
        columns: the columns to return, in this order; None is all.
        predicate: resolved against `schema`; only rows for which it is true are returned.
    """

    reach: TableReach
    schema: StructType
    mapping: ColumnMapping = UNMAPPED
    columns: Sequence[str] | None = None
    predicate: Expression | None = None

    def read(
        self,
        spark: SparkSession,
        files: Iterable[TableFile],
        *,
        constants: Sequence[str],
        metadata: Mapping[str, str],
    ) -> DataFrame:
        """The rows of the files: the columns, then those of `metadata`.

        Args:
            spark: the session.
            files: the files. A file may occur more than once, with other values or rows.
            constants: the names of the columns that are constant in each file.
            metadata: additional columns, each with its field of Spark's `_metadata`.

        Raises:
            PathEscapeError: a path or a symbolic link leads out of the table and the allowed roots.
            CorruptLogError: a constant is not of its column's type.
            DeltaError: see `make_masks`.
        """
        constants = canonical_names(self.schema, constants)
        constant = _Constants(self.schema, constants, self.mapping)
        native: dict[_Group, list[tuple[LocatedFile, PartitionTuple]]] = {}
        others: list[LocatedFile] = []
        for located in located_files(files, store=self.reach.store, access=self.reach.access):
            values = constant.of(located.file.values)
            if self.reach.is_native and not is_unreadable(located.place.path):
                native.setdefault(_Group.of(located), []).append((located, values))
            else:
                others.append(located)
        frames = [self._by_spark(spark, group, found, constants, metadata) for group, found in native.items()]
        if others:
            frames.append(self._by_arrow(spark, others, constants, metadata))
        return reduce(lambda one, other: one.unionByName(other), frames or [self._empty(spark, metadata)])

    def _by_spark(
        self,
        spark: SparkSession,
        group: _Group,
        found: Sequence[tuple[LocatedFile, PartitionTuple]],
        constants: Sequence[str],
        metadata: Mapping[str, str],
    ) -> DataFrame:
        frame = native_scan(
            spark,
            DataFiles(
                root=self.reach.root_of(group.store),
                paths=[located.place.path for located, _ in found],
                partitions=[values for _, values in found],
            ),
            schema=self.schema,
            constants=constants,
            metadata=metadata,
            mapping=self.mapping,
            masks=self._masks([located for located, _ in found]) if group.masked else None,
        )
        if self.predicate is not None:
            frame = frame.where(to_column(self.predicate, self.schema))
        return frame if self.columns is None else frame.select(*map(quoted, (*self.columns, *metadata)))

    def _masks(self, found: Sequence[LocatedFile]) -> RowMasks:
        def rows_of(item: LocatedFile) -> int:
            known = item.file.num_rows
            if known is not None and known < _MOST_ROWS:
                return known
            return rows_in_footer(item.place, access=self.reach.access)

        return RowMasks(
            choices=[item.file.rows for item in found],
            num_rows=parallel(self.reach.store, [partial(rows_of, item) for item in found]),
            reach=self.reach,
        )

    def _by_arrow(
        self,
        spark: SparkSession,
        found: Sequence[LocatedFile],
        constants: Sequence[str],
        metadata: Mapping[str, str],
    ) -> DataFrame:
        return arrow_scan(
            spark,
            self.reach,
            found,
            schema=self.schema,
            constants=constants,
            mapping=self.mapping,
            columns=self.columns,
            predicate=self.predicate,
            metadata=metadata,
        )

    def _empty(self, spark: SparkSession, metadata: Mapping[str, str]) -> DataFrame:
        added = [
            StructField(name=name, data_type=LONG if field == ROW_INDEX else STRING)
            for name, field in metadata.items()
        ]
        fields = (*output_fields(self.schema, self.columns), *added)
        return spark.createDataFrame([], to_spark(StructType(fields)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The properties that all files of one scan by Spark have in common."""

    store: LogStore
    masked: bool
    keeps_listed: bool

    @classmethod
    def of(cls, located: LocatedFile) -> _Group:
        rows = located.file.rows
        return cls(store=located.place.store, masked=not rows.chooses_all, keeps_listed=rows.keeps_listed)


class _Constants:
    """The constants of files in the order of their columns, in the canonical form of each value."""

    def __init__(self, schema: StructType, names: Sequence[str], mapping: ColumnMapping) -> None:
        by_name = {field.name: field for field in schema}
        self._fields = [
            (mapping.physical_name(by_name[name]).casefold(), by_name[name].data_type) for name in names
        ]
        self._canonical: dict[tuple[int, str | None], str | None] = {}

    def of(self, values: Mapping[str, str | None]) -> PartitionTuple:
        if not self._fields:
            return ()
        raw = {name.casefold(): value for name, value in values.items()}
        return tuple(self._value(index, raw.get(name)) for index, (name, _) in enumerate(self._fields))

    def _value(self, index: int, raw: str | None) -> str | None:
        key = (index, raw)
        if key not in self._canonical:
            data_type = self._fields[index][1]
            self._canonical[key] = serialize(parse(raw, data_type), data_type)
        return self._canonical[key]
