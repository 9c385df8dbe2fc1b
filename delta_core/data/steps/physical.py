"""Conversion of logical rows to the columns of a data file: the only step that applies column mapping.

Applies physical names and ids, drops void columns, puts partition columns last where files contain them,
then the hidden row-tracking columns. Statistics and partition values use physical names, so they are taken
after this step (PROTOCOL.md, "Writer Requirements for Column Mapping", "Writer Requirements for Row
Tracking").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from delta_core.data.row_batch import Array, RowBatch
from delta_core.data.write_plan import WritePlan
from delta_core.schema.column_mapping import ColumnMappingMode, FileColumn
from delta_core.schema.conversion import convert_chunked
from delta_core.schema.evolution import require_writable_void
from delta_core.schema.file_schema import file_fields, file_schema
from delta_core.schema.nullability import has_required_fields, without_hidden_nulls
from delta_core.schema.types import StructField
from delta_core.table_features.stats_leaves import SkippingProperties, StatsLeaf, all_leaves, stats_leaves


class PhysicalStep:
    """Converts rows of one partition to a file's columns.

    Attributes:
        file_schema: the Arrow schema of the files.
    """

    def __init__(self, plan: WritePlan, *, keep_row_ids: bool = False) -> None:
        """Prepare the step for a table.

        Args:
            plan: the write plan of the table.
            keep_row_ids: whether files contain the hidden columns, for rows that were in the table before.
                Ignored for tables without row tracking.

        Raises:
            InvalidTableError: the schema lacks column mapping metadata, or has void where it is not allowed.
            SchemaError: a hidden column's name is taken.
        """
        require_writable_void(plan.schema)
        self._plan = plan
        self.keeps_row_ids = keep_row_ids and plan.row_tracking is not None
        tracking = plan.row_tracking if self.keeps_row_ids else None
        self.file_schema = file_schema(
            plan.schema,
            mapping=plan.mapping,
            partition_columns=plan.partition_columns,
            materialise_partition_columns=plan.materialise_partition_columns,
            hidden=() if tracking is None else (tracking.row_id_column, tracking.row_commit_version_column),
        )
        self._fields = file_fields(
            plan.schema,
            partition_columns=plan.partition_columns,
            materialise_partition_columns=plan.materialise_partition_columns,
        )
        # By logical names, without void.
        self._logical = file_schema(
            plan.schema,
            partition_columns=plan.partition_columns,
            materialise_partition_columns=plan.materialise_partition_columns,
        )

        self._may_match = (
            plan.mapping.mode is ColumnMappingMode.NONE
            and not self.keeps_row_ids
            and not any(has_required_fields(field.type) for field in self.file_schema)
        )

    @property
    def logical_fields(self) -> Sequence[StructField]:
        """The table's fields in the files, in the order of the first fields of `file_schema`."""
        return self._fields

    @property
    def hidden_columns(self) -> Sequence[str]:
        """The names of the hidden columns, which follow the table's columns in `file_schema`."""
        names: list[str] = self.file_schema.names
        return names[len(self._fields) :]

    @property
    def columns_needed(self) -> frozenset[str]:
        """The columns in the files."""
        return frozenset(field.name for field in self._fields)

    def partition_name(self, column: str) -> str:
        """The name of a partition column in the log's partition values."""
        field = self._plan.schema.find(column)
        assert field is not None
        return self._plan.mapping.physical_name(field)

    def leaves(self, properties: SkippingProperties | None) -> list[StatsLeaf]:
        """The leaves that get statistics, by their paths in the files. Properties use logical names.

        Includes the clustering columns for any properties.
        """
        leaves = self._in_files(stats_leaves(self._plan.schema, properties, **self._partitions))
        missing = set(self._plan.clustered_by) - {leaf.path for leaf in leaves}
        if missing:
            every = self._in_files(all_leaves(self._plan.schema, properties, **self._partitions))
            leaves += [leaf for leaf in every if leaf.path in missing]
        return leaves

    @property
    def _partitions(self) -> dict[str, Sequence[str]]:
        return {"partition_columns": self._plan.partition_columns}

    def _in_files(self, leaves: list[StatsLeaf]) -> list[StatsLeaf]:
        schema, mapping = self._plan.schema, self._plan.mapping
        if mapping.mode is ColumnMappingMode.NONE:
            return leaves
        return [replace(leaf, path=mapping.physical_path(leaf.path, schema)) for leaf in leaves]

    def apply(self, batch: RowBatch) -> pa.Table:
        """The rows as a table of `file_schema`. Copies values only when a nested column contains void.

        Args:
            batch: rows with the columns of `columns_needed`, in the Arrow types of the schema.
        """
        rows = batch.columns
        if self._may_match and isinstance(rows, pa.Table) and rows.schema.equals(self.file_schema):
            return rows
        columns: list[Array] = [
            _renamed(_as_chunked(rows.column(logical.name)), logical.type, target)
            for logical, target in zip(self._logical, self.file_schema, strict=False)
        ]
        if self.keeps_row_ids:
            columns += _hidden(batch)
        return pa.Table.from_arrays(columns, schema=self.file_schema)


def _hidden(batch: RowBatch) -> Sequence[Array]:
    if batch.hidden is None:
        return [pa.nulls(batch.num_rows, pa.int64())] * 2
    return [batch.hidden.row_ids, batch.hidden.row_commit_versions]


def _as_chunked(column: Array) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _renamed(column: pa.ChunkedArray, logical: pa.DataType, target: pa.Field) -> pa.ChunkedArray:
    chunks = convert_chunked(column, logical).chunks
    if logical != target.type:
        renaming = FileColumn(name=target.name, data_type=logical, target=target.type)
        chunks = [renaming.renamed(chunk) for chunk in chunks]
    if has_required_fields(target.type):
        chunks = [without_hidden_nulls(chunk) for chunk in chunks]
    return pa.chunked_array(chunks, type=target.type)
