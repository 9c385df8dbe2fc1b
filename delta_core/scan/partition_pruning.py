"""Partition values of many files as typed columns, and the test of a predicate on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import conjunction, referenced_names, split_conjuncts
from delta_core.expressions.skipping import partition_match
from delta_core.replay.file_chunk import map_values
from delta_core.replay.live_files import LiveFiles
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping
from delta_core.schema.partition_values import parse_column
from delta_core.schema.types import StructType


def typed_partitions(
    files: LiveFiles | pa.Table,
    schema: StructType,
    columns: Iterable[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> pa.Table:
    """The values of some partition columns, one row per file, in the columns' types.

    Each distinct text is parsed once.

    Args:
        files: a snapshot's files, or a table with the column `partition_values`.
        schema: the table's schema.
        columns: partition columns, named as in `schema`.
        mapping: the table's column mapping.

    Raises:
        CorruptLogError: a value is not of its column's type.
    """
    arrays, fields = [], []
    for name in columns:
        field = schema.find(name)
        assert field is not None
        kind = type_to_arrow(field.data_type)
        chunks = [
            parse_column(
                chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode(), field.data_type
            )
            for chunk in _texts(files, mapping.physical_name(field))
        ]
        arrays.append(pa.chunked_array(chunks, kind))
        fields.append(pa.field(field.name, kind))
    if not arrays:
        # Arrow tables without columns have no length; one that nobody names gives it.
        return pa.table({"": pa.nulls(_length(files))})
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def split_by_partition_columns(
    predicate: Expression, partition_columns: Sequence[str]
) -> tuple[Expression, Expression]:
    """The conjuncts on partition columns alone, and the others, each as one predicate."""
    partitions = set(partition_columns)
    alone: list[Expression] = []
    others: list[Expression] = []
    for term in split_conjuncts(predicate):
        (alone if referenced_names(term) <= partitions else others).append(term)
    return conjunction(alone), conjunction(others)


def partition_mask(
    files: LiveFiles | pa.Table,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> npt.NDArray[np.bool_]:
    """Which files' partition values let the predicate be true. Exact for its partition-only conjuncts."""
    names = sorted(referenced_names(predicate) & set(partition_columns))
    return partition_match(predicate, typed_partitions(files, schema, names, mapping=mapping))


def _texts(files: LiveFiles | pa.Table, name: str) -> list[pa.Array]:
    if isinstance(files, LiveFiles):
        return list(files.partition_column(name).chunks)
    return [map_values(chunk, name) for chunk in files.column("partition_values").chunks]


def _length(files: LiveFiles | pa.Table) -> int:
    return files.num_files if isinstance(files, LiveFiles) else int(files.num_rows)
