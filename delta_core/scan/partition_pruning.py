"""Partition values of many files as typed columns, and the test of a predicate on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.errors import CorruptLogError, DeltaError, ExpressionError
from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import conjunction, referenced_names, split_conjuncts
from delta_core.expressions.skipping import partition_match
from delta_core.replay.live_files import LiveFiles
from delta_core.replay.map_strings import CodedStrings, coded_strings
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping
from delta_core.schema.partition_values import parse_column
from delta_core.schema.types import DataType, StructField, StructType

_NO_STRING = pa.nulls(1, pa.string())
# Beyond so many nothing is said of the rest: their files are read.
_MAX_FAILURES = 2000


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
        strings = _strings(files, mapping.physical_name(field))
        try:
            chunks = [_typed(one, field.data_type) for one in strings]
        except CorruptLogError as error:
            raise _located(error, files, strings, field) from error
        arrays.append(pa.chunked_array(chunks, kind))
        fields.append(pa.field(field.name, kind))
    if not arrays:
        # Arrow tables without columns have no length; one that nobody names gives it.
        return pa.table({"": pa.nulls(_length(files))})
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _typed(coded: CodedStrings, data_type: DataType) -> pa.Array:
    try:
        return parse_column(coded.strings, data_type).take(coded.indices())
    except CorruptLogError:
        # The text at fault may be one that no file has any more.
        return parse_column(coded.to_array().dictionary_encode(), data_type)


def _located(
    error: CorruptLogError, files: LiveFiles | pa.Table, strings: list[CodedStrings], field: StructField
) -> CorruptLogError:
    """The error with the path of the first file whose value is wrong."""
    if isinstance(files, pa.Table) and "path" not in files.schema.names:
        return error
    paths = (files.to_table(["path"]) if isinstance(files, LiveFiles) else files).column("path").to_pylist()
    found = (text for one in strings for text in one.to_array().to_pylist())
    for path, text in zip(paths, found, strict=True):
        try:
            parse_column(pa.array([text], pa.string()), field.data_type)
        except CorruptLogError as own:
            where = f"{own.problem}, for the column {field.name} of the data file {path}"
            return CorruptLogError(where, cause=own.cause, fix=own.fix)
    return error


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


@dataclass(frozen=True, slots=True)
class PartitionMatch:
    """Which files' partition values let a predicate be true.

    Attributes:
        mask: an entry for each file. False is exact; so is True, unless there is an `error`.
        error: why the predicate on partition values alone cannot be worked out for one of the files that
            are left. Nothing can be said of that file's rows but by evaluating it on them.
    """

    mask: npt.NDArray[np.bool_]
    error: ExpressionError | None = None


def partition_mask(
    files: LiveFiles | pa.Table,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> npt.NDArray[np.bool_]:
    """The files whose rows all satisfy a predicate on partition columns alone.

    Raises:
        ExpressionError: it cannot be worked out for a file that the rest of it does not rule out.
        CorruptLogError: a partition value is not of its column's type.
    """
    found = match_partitions(files, predicate, schema, partition_columns, mapping=mapping)
    if found.error is not None:
        raise found.error
    return found.mask


def match_partitions(
    files: LiveFiles | pa.Table,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> PartitionMatch:
    """Hold a predicate on partition columns alone against files; each of its conjuncts by itself.

    Raises:
        CorruptLogError: a partition value is not of its column's type.
    """
    length = _length(files)
    mask, undecided = np.ones(length, np.bool_), np.zeros(length, np.bool_)
    error: ExpressionError | None = None
    for term in split_conjuncts(predicate):
        found = _matched(files, term, schema, partition_columns, mapping)
        mask &= found.mask | found.undecided
        undecided |= found.undecided
        error = error or found.error
    return PartitionMatch(mask, error if (mask & undecided).any() else None)


@dataclass(frozen=True, slots=True)
class _Matched:
    """A conjunct's answers, and where it has none."""

    mask: npt.NDArray[np.bool_]
    undecided: npt.NDArray[np.bool_]
    error: ExpressionError | None


def _matched(
    files: LiveFiles | pa.Table,
    term: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    mapping: ColumnMapping,
) -> _Matched:
    names = sorted(referenced_names(term) & set(partition_columns))
    if isinstance(files, LiveFiles) and len(names) == 1:
        found = _matched_by_value(files, term, schema, names[0], mapping)
        if found is not None:
            return found
    return _worked_out(term, typed_partitions(files, schema, names, mapping=mapping))


def _matched_by_value(
    files: LiveFiles, term: Expression, schema: StructType, name: str, mapping: ColumnMapping
) -> _Matched | None:
    """A predicate on one partition column, worked out once for each distinct value.

    None where a text is not of the column's type: it may be one that no live file has.
    """
    field = schema.find(name)
    assert field is not None
    masks, undecided, error = [], [], None
    for coded in files.coded_partition(mapping.physical_name(field)):
        try:
            values = parse_column(pa.concat_arrays([coded.strings, _NO_STRING]), field.data_type)
        except DeltaError:
            return None
        found = _worked_out(term, pa.table({field.name: values}))
        # Code -1, no text, is the last value. Values that no file has any more are no file's trouble.
        masks.append(found.mask[coded.codes])
        undecided.append(found.undecided[coded.codes])
        error = error or found.error
    if not masks:
        return _Matched(np.zeros(0, np.bool_), np.zeros(0, np.bool_), None)
    return _Matched(np.concatenate(masks), np.concatenate(undecided), error)


def _worked_out(term: Expression, partitions: pa.Table) -> _Matched:
    """Evaluate; where that fails, halve by halve down to the values at fault."""
    length = partitions.num_rows
    mask, undecided = np.zeros(length, np.bool_), np.zeros(length, np.bool_)
    first_error: ExpressionError | None = None
    waiting = [(0, length)]
    failures = 0
    while waiting:
        start, stop = waiting.pop()
        try:
            if failures <= _MAX_FAILURES:
                mask[start:stop] = partition_match(term, partitions.slice(start, stop - start))
                continue
        except ExpressionError as error:
            first_error = first_error or error
            failures += 1
            if stop - start > 1:
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
                continue
        undecided[start:stop] = True
    return _Matched(mask, undecided, first_error)


def _strings(files: LiveFiles | pa.Table, name: str) -> list[CodedStrings]:
    if isinstance(files, LiveFiles):
        return files.coded_partition(name)
    return [coded_strings(chunk, name) for chunk in files.column("partition_values").chunks]


def _length(files: LiveFiles | pa.Table) -> int:
    return files.num_files if isinstance(files, LiveFiles) else int(files.num_rows)
