"""The second phase of a MERGE in Arrow: the values of changed and inserted rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.data.row_batch import MaterializedRowIds, RowBatch
from delta_core.data.row_pipeline import RowPipeline
from delta_core.data.steps.defaults import DefaultsStep
from delta_core.data.steps.step import with_column
from delta_core.data.write_plan import WritePlan
from delta_core.dml.matched_rows import rows_where
from delta_core.errors import ExpressionError, SchemaMismatchError
from delta_core.expressions.arithmetic import cast_value
from delta_core.expressions.ast import Cast, Expression, Literal
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.literals import convert_literal, literal_type
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve, type_of
from delta_core.merge.matching import Choice
from delta_core.merge.names import MergeNames, one_array, struct_of
from delta_core.merge.source import MergeSource
from delta_core.schema.arrow import field_to_arrow, type_to_arrow
from delta_core.schema.conversion import convert_array
from delta_core.schema.enforcement import type_problems
from delta_core.schema.types import (
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

_NESTED = (StructType, ArrayType, MapType)
_NUMBERS = (BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE)

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """The value that a clause assigns to a column.

    Attributes:
        field: the column.
        expression: over the rows of `MergeNames.data`; None for a constant.
        constant: the constant in the column's type.
        refuses: whether a value that does not fit the column is an error; else it becomes null.
    """

    field: StructField
    expression: Expression | None = None
    constant: pa.Scalar | None = None
    refuses: bool = True

    def of(self, data: pa.RecordBatch) -> pa.Array:
        """The values of all rows, in the column's Arrow type."""
        target = type_to_arrow(self.field.data_type)
        if self.expression is None:
            if self.constant is None or not self.constant.is_valid:
                return pa.nulls(data.num_rows, target)
            return pa.repeat(self.constant, data.num_rows)
        try:
            return self._evaluated(self.expression, data, target)
        except (ExpressionError, pa.ArrowInvalid) as error:
            if not self.refuses:
                return self._fitting(data, target)
            raise ExpressionError(
                f"A value of {to_spark_sql(self.expression)} does not fit {self.field.name}.",
                cause=str(error),
                fix=f"Assign values that fit the type {self.field.data_type}, or exclude these rows by the "
                "condition of the clause.",
            ) from error

    def _evaluated(self, expression: Expression, data: pa.RecordBatch, target: pa.DataType) -> pa.Array:
        values = one_array(evaluate(expression, data))
        if values.type == target:
            return values
        nested = isinstance(self.field.data_type, _NESTED) or self.field.data_type == VARIANT
        return convert_array(values, target) if nested else one_array(cast_value(values, target))

    def _fitting(self, data: pa.RecordBatch, target: pa.DataType) -> pa.Array:
        """The values where they fit, else null. Halves the rows until each part fits or is one row."""
        assert self.expression is not None
        if data.num_rows <= 1:
            try:
                return self._evaluated(self.expression, data, target)
            except (ExpressionError, pa.ArrowInvalid):
                return pa.nulls(data.num_rows, target)
        half = data.num_rows // 2
        parts = []
        for part in (data.slice(0, half), data.slice(half)):
            try:
                parts.append(self._evaluated(self.expression, part, target))
            except (ExpressionError, pa.ArrowInvalid):
                parts.append(self._fitting(part, target))
        return pa.concat_arrays(parts)


class ClauseValues:
    """The values of one clause, resolved against the columns of both sides."""

    def __init__(
        self,
        assigned: Mapping[str, Any],
        plan: WritePlan,
        names: MergeNames,
        *,
        defaults: DefaultsStep,
        is_insert: bool,
        refuses: bool,
        **sides: bool,
    ) -> None:
        """Resolve the assignments of a clause.

        Args:
            assigned: SQL text or trees by column of the table; `DEFAULT` is the column's default.
            plan: the write plan of the table after the merge.
            names: the columns of both sides.
            defaults: the defaults of this statement.
            is_insert: whether the clause inserts rows.
            refuses: see `Value`.
            **sides: the arguments of `MergeNames.parsed`.

        Raises:
            ExpressionError: an expression cannot be parsed or resolved, or cannot be cast to the column's
                type.
            SchemaMismatchError: the fields of a struct differ from those of the column.
        """
        values = []
        for name, value in assigned.items():
            field = plan.schema.find(name)
            assert field is not None
            if isinstance(value, str) and value.strip().upper() == "DEFAULT":
                if is_insert:
                    continue
                constant = defaults.value(name) if name in defaults.strings else None
                values.append(Value(field=field, constant=constant))
                continue
            parsed = names.parsed(value, **sides)
            try:
                expression = _stored(parsed, field, names.schema, may_lack_fields=is_insert)
            except ExpressionError:
                if refuses or not isinstance(parsed, Literal):
                    raise
                expression = Literal(None)  # a constant that does not fit
            values.append(Value(field=field, expression=expression, refuses=refuses))
        self.values = tuple(values)
        self.columns = frozenset(value.field.name for value in values)
        expressions = [value.expression for value in values if value.expression is not None]
        self.target_columns = names.columns_of(names.target_alias, expressions)
        self.source_columns = names.columns_of(names.source_alias, expressions)


def _stored(
    expression: Expression, field: StructField, schema: StructType, *, may_lack_fields: bool
) -> Expression:
    """The expression, converted so that its value can be stored in the column."""
    target = field.data_type
    resolved = resolve(expression, schema)
    if isinstance(resolved, Literal):
        if resolved.value is None:
            return Literal(None)
        resolved = convert_literal(resolved, target, field.name)
        source: DataType = literal_type(resolved)
    else:
        source = type_of(resolved, schema)
    if source in (target, VOID):
        return resolved
    if isinstance(source, _NESTED) or isinstance(target, _NESTED):
        problems = type_problems(target, _with_numbers_of(source, target), field.name)
        problem = problems[0] if problems else None
        if problem is None and not may_lack_fields:
            problem = _missing_field(source, target, field.name)
        if problem is not None:
            raise SchemaMismatchError(
                f"The merge cannot set {field.name!r}: {problem}.",
                cause="A struct is set as a whole, so a missing field would become null.",
                fix="Give exactly the fields of the column.",
            )
        return resolved
    return resolve(Cast(resolved, target), schema)


def _with_numbers_of(source: DataType, target: DataType) -> DataType:
    """The type with the numbers of the target: they are cast, and refused where they do not fit."""
    if isinstance(source, StructType) and isinstance(target, StructType):
        fields = []
        for item in source:
            found = target.find(item.name)
            data_type = item.data_type if found is None else _with_numbers_of(item.data_type, found.data_type)
            fields.append(replace(item, data_type=data_type))
        return StructType(tuple(fields))
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return replace(source, element_type=_with_numbers_of(source.element_type, target.element_type))
    if isinstance(source, MapType) and isinstance(target, MapType):
        return replace(
            source,
            key_type=_with_numbers_of(source.key_type, target.key_type),
            value_type=_with_numbers_of(source.value_type, target.value_type),
        )
    return target if _is_number(source) and _is_number(target) else source


def _is_number(data_type: DataType) -> bool:
    return isinstance(data_type, DecimalType) or data_type in _NUMBERS


def _missing_field(source: DataType, target: DataType, path: str) -> str | None:
    if isinstance(source, StructType) and isinstance(target, StructType):
        for item in target:
            found = source.find(item.name)
            if found is None:
                return f"the value has no field {path}.{item.name}"
            if problem := _missing_field(found.data_type, item.data_type, f"{path}.{item.name}"):
                return problem
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _missing_field(source.element_type, target.element_type, f"{path}.element")
    if isinstance(source, MapType) and isinstance(target, MapType):
        return _missing_field(source.value_type, target.value_type, f"{path}.value")
    return None


class RowChanger:
    """Computes updated and inserted rows, checked and complete. May be used by several threads."""

    def __init__(
        self,
        plan: WritePlan,
        pipeline: RowPipeline,
        source: MergeSource,
        names: MergeNames,
        *,
        updates: Sequence[ClauseValues | None],
        inserts: Sequence[ClauseValues],
        insert_choice: Choice,
    ) -> None:
        """Prepare the changes.

        Args:
            plan: the write plan of the table after the merge.
            pipeline: the steps of its rows.
            source, names: the merge.
            updates: the values by clause number; None for a clause that deletes.
            inserts: the values of the clauses that insert.
            insert_choice: chooses among the clauses that insert.
        """
        self._plan, self._pipeline, self._source, self._names = plan, pipeline, source, names
        self._updates, self._inserts, self._insert_choice = updates, inserts, insert_choice
        self._partitions = frozenset(plan.partition_columns)
        self._generated = frozenset(item.name for item in plan.generated)
        assigned = [clause.columns for clause in updates if clause is not None]
        read = {name for clause in updates if clause is not None for name in clause.target_columns}
        whole = (
            frozenset.intersection(*((columns | self._generated) for columns in assigned))
            if assigned
            else frozenset()
        )
        self.unread = whole - read
        """The columns whose old values no new value depends on."""

    def updated(self, old: RowBatch, actions: npt.NDArray[np.int16], sources: Numbers) -> RowBatch:
        """The rows after their clauses, in their order. No clause of them deletes."""
        parts, places = [], []
        for number in np.unique(actions):
            clause = self._updates[number]
            assert clause is not None
            mask = actions == number
            parts.append(self._by_clause(clause, rows_where(old, mask), sources[mask]))
            places.append(np.flatnonzero(mask))
        if len(parts) == 1:
            return parts[0]
        order = np.empty(old.num_rows, np.int64)
        order[np.concatenate(places)] = np.arange(old.num_rows)
        return _taken(_united(parts), order)

    def _by_clause(self, clause: ClauseValues, old: RowBatch, sources: Numbers) -> RowBatch:
        rows = old.columns
        assert isinstance(rows, pa.RecordBatch)
        data = self._names.data(
            old.num_rows,
            target=struct_of(rows, clause.target_columns),
            source=self._source.rows(clause.source_columns, sources),
        )
        changed = rows
        for value in clause.values:
            name = value.field.name
            changed = with_column(changed, value.field, value.of(data), is_partition=name in self._partitions)
        hidden = old.hidden
        if hidden is not None:
            versions = pa.nulls(old.num_rows, pa.int64())
            hidden = MaterializedRowIds(row_ids=hidden.row_ids, row_commit_versions=versions)
        absent = self._generated - clause.columns
        return self._pipeline.updated_rows(RowBatch(columns=changed, absent=absent, hidden=hidden))

    def inserted(self, chosen: Numbers) -> Iterator[RowBatch]:
        """The rows that the clauses insert for the chosen source rows."""
        columns = self._names.columns_of(self._names.source_alias, self._insert_choice.expressions)
        struct = self._source.rows(columns, chosen)
        actions = self._insert_choice.of(self._names.data(len(chosen), target=None, source=struct))
        for number, clause in enumerate(self._inserts):
            rows = chosen[actions == number]
            if not len(rows):
                continue
            data = self._names.data(
                len(rows), target=None, source=self._source.rows(clause.source_columns, rows)
            )
            arrays = [value.of(data) for value in clause.values]
            fields = [
                pa.field(value.field.name, array.type)
                for value, array in zip(clause.values, arrays, strict=True)
            ]
            if not arrays:
                plan = self._plan
                unfilled = [item for item in plan.schema if item.name not in plan.filled_columns]
                first = (unfilled or plan.schema.fields)[0]
                arrays = [pa.nulls(len(rows), type_to_arrow(first.data_type))]
                fields = [field_to_arrow(first).with_nullable(True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
            yield RowBatch(columns=self._pipeline.new_rows(batch))


def evolved(batch: RowBatch, schema: StructType) -> RowBatch:
    """Rows of the table in the schema after the merge. New columns are null."""
    rows = batch.columns
    arrays = []
    for item in schema:
        target = type_to_arrow(item.data_type)
        index = rows.schema.get_field_index(item.name)
        arrays.append(
            pa.nulls(rows.num_rows, target) if index < 0 else convert_array(rows.column(index), target)
        )
    fields = [field_to_arrow(item).with_nullable(True) for item in schema]
    columns = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    return RowBatch(columns=columns, absent=batch.absent, hidden=batch.hidden)


def _united(parts: Sequence[RowBatch]) -> RowBatch:
    """The rows of all parts, one after the other. The parts have the same columns."""
    names = parts[0].columns.schema.names
    arrays = [pa.concat_arrays([one_array(part.columns.column(name)) for part in parts]) for name in names]
    fields = [
        pa.field(name, array.type, metadata=parts[0].columns.schema.field(name).metadata)
        for name, array in zip(names, arrays, strict=True)
    ]
    hidden = [part.hidden for part in parts if part.hidden is not None]
    return RowBatch(
        columns=pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)),
        hidden=MaterializedRowIds(
            row_ids=pa.concat_arrays([one_array(item.row_ids) for item in hidden]),
            row_commit_versions=pa.concat_arrays([one_array(item.row_commit_versions) for item in hidden]),
        )
        if hidden
        else None,
    )


def _taken(batch: RowBatch, order: Numbers) -> RowBatch:
    indexes = pa.array(order)
    hidden = batch.hidden
    return RowBatch(
        columns=batch.columns.take(indexes),
        hidden=None
        if hidden is None
        else MaterializedRowIds(
            row_ids=hidden.row_ids.take(indexes),
            row_commit_versions=hidden.row_commit_versions.take(indexes),
        ),
    )
