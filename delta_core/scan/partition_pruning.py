"""Partition values of many files as typed columns, and evaluation of predicates on them."""

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
# After so many failures the remaining files are treated as undecided, and are read.
_MAX_FAILURES = 2000


def typed_partitions(
    files: LiveFiles | pa.Table,
    schema: StructType,
    columns: Iterable[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> pa.Table:
    """The values of some partition columns, one row per file, in the columns' types.

    Each distinct string is parsed once.

    Args:
        files: a snapshot's files, or a table with the column `partition_values`.
        schema: the table's schema.
        columns: partition columns, named as in `schema`.
        mapping: the table's column mapping.

    Raises:
        CorruptLogError: a value does not have its column's type.
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
        # An Arrow table without columns has no length; an unused column gives it one.
        return pa.table({"": pa.nulls(_length(files))})
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _typed(coded: CodedStrings, data_type: DataType) -> pa.Array:
    try:
        return parse_column(coded.strings, data_type).take(coded.indices())
    except CorruptLogError:
        # The invalid string may belong to files that are no longer live.
        return parse_column(coded.to_array().dictionary_encode(), data_type)


def _located(
    error: CorruptLogError, files: LiveFiles | pa.Table, strings: list[CodedStrings], field: StructField
) -> CorruptLogError:
    """The error with the path of the first file whose value is invalid."""
    if isinstance(files, pa.Table) and "path" not in files.schema.names:
        return error
    paths = (files.to_table(["path"]) if isinstance(files, LiveFiles) else files).column("path").to_pylist()
    values = (string for one in strings for string in one.to_array().to_pylist())
    for path, value in zip(paths, values, strict=True):
        try:
            parse_column(pa.array([value], pa.string()), field.data_type)
        except CorruptLogError as own:
            where = f"{own.problem.rstrip('.')}, for the column {field.name} of the data file {path}."
            return CorruptLogError(where, cause=own.cause, fix=own.fix)
    return error


def split_by_partition_columns(
    predicate: Expression, partition_columns: Sequence[str]
) -> tuple[Expression, Expression]:
    """The conjuncts that use only partition columns, and the other conjuncts, each as one predicate."""
    partitions = set(partition_columns)
    alone: list[Expression] = []
    others: list[Expression] = []
    for term in split_conjuncts(predicate):
        (alone if referenced_names(term) <= partitions else others).append(term)
    return conjunction(alone), conjunction(others)


@dataclass(frozen=True, slots=True)
class PartitionMatch:
    """The files whose partition values satisfy a predicate.

    Attributes:
        mask: an entry for each file. False is exact; True is exact unless there is an `error`.
        error: why the predicate cannot be evaluated on the partition values of one of the selected files.
            For that file it must be evaluated on the rows.
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
    """The files whose rows all satisfy a predicate that uses only partition columns.

    Raises:
        ExpressionError: a conjunct cannot be evaluated for a file that the other conjuncts do not exclude.
        CorruptLogError: a partition value does not have its column's type.
    """
    result = match_partitions(files, predicate, schema, partition_columns, mapping=mapping)
    if result.error is not None:
        raise result.error
    return result.mask


def match_partitions(
    files: LiveFiles | pa.Table,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> PartitionMatch:
    """Evaluate a predicate that uses only partition columns for all files; each conjunct separately.

    Raises:
        CorruptLogError: a partition value does not have its column's type.
    """
    length = _length(files)
    mask, undecided = np.ones(length, np.bool_), np.zeros(length, np.bool_)
    error: ExpressionError | None = None
    for term in split_conjuncts(predicate):
        answer = _matched(files, term, schema, partition_columns, mapping)
        mask &= answer.mask | answer.undecided
        undecided |= answer.undecided
        error = error or answer.error
    return PartitionMatch(mask, error if (mask & undecided).any() else None)


@dataclass(frozen=True, slots=True)
class _Matched:
    """The result of a conjunct for each file, and the files for which it could not be evaluated."""

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
        result = _matched_by_value(files, term, schema, names[0], mapping)
        if result is not None:
            return result
    return _evaluated(term, typed_partitions(files, schema, names, mapping=mapping))


def _matched_by_value(
    files: LiveFiles, term: Expression, schema: StructType, name: str, mapping: ColumnMapping
) -> _Matched | None:
    """A predicate on one partition column, evaluated once for each distinct value.

    None where a string does not have the column's type: it may be a string that no live file has.
    """
    field = schema.find(name)
    assert field is not None
    masks, undecided, error = [], [], None
    for coded in files.coded_partition(mapping.physical_name(field)):
        try:
            values = parse_column(pa.concat_arrays([coded.strings, _NO_STRING]), field.data_type)
        except DeltaError:
            return None
        result = _evaluated(term, pa.table({field.name: values}))
        # Code -1, null, selects the last value. Values that no live file has are not selected.
        masks.append(result.mask[coded.codes])
        undecided.append(result.undecided[coded.codes])
        error = error or result.error
    if not masks:
        return _Matched(np.zeros(0, np.bool_), np.zeros(0, np.bool_), None)
    return _Matched(np.concatenate(masks), np.concatenate(undecided), error)


def _evaluated(term: Expression, partitions: pa.Table) -> _Matched:
    """Evaluate a conjunct; where it fails, bisect down to the values that cause the failure."""
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
