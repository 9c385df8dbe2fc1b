"""Rows as the columns of data files, for Spark's own writer: physical names, field ids, partition strings.

`delta_core` decides the layout (`PhysicalStep`), and its Arrow schema is rendered as Spark types here. Spark
cannot write every layout. Tasks with `delta_core`'s writer write the others (`needs_tasks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan
from delta_core.schema.types import VOID, ArrayType, DataType, MapType, StructType
from spark_jobs.expressions.columns import partition_string, quoted
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql import types as spark_types

_ARROW_ID: Final = b"PARQUET:field_id"
_SPARK_ID: Final = "parquet.field.id"


def needs_tasks(plan: WritePlan) -> bool:
    """Whether Spark's own writer cannot make the files of a table.

    It cannot write ids of list elements, map keys and values (Iceberg compatibility), columns by which the
    files are partitioned, and structs without their void fields.
    """
    if plan.materialise_partition_columns and plan.partition_columns:
        return True
    if any(_has_nested_void(field.data_type) for field in plan.schema):
        return True
    return any(_has_nested_ids(field) for field in PhysicalStep(plan).file_schema)


def physical_frame(
    frame: DataFrame, plan: WritePlan, *, keep_row_ids: bool = False
) -> tuple[DataFrame, list[str]]:
    """The rows as columns of files, and the names of the partition columns.

    Args:
        frame: the table's columns; with `keep_row_ids` also the hidden columns of row tracking.
        plan: the write plan of the table; `needs_tasks` is false for it.
        keep_row_ids: see `PhysicalStep`.

    Returns:
        The columns of the files with their ids, then the partition columns as strings in the log's format,
        both by physical names.
    """
    from pyspark.sql import functions as fn

    step = PhysicalStep(plan, keep_row_ids=keep_row_ids)
    types = {field.name: field.data_type for field in plan.schema}
    columns = [
        _renamed(fn.col(quoted(field.name)), field.data_type, target)
        for field, target in zip(step.logical_fields, step.file_schema, strict=False)
    ]
    columns += [fn.col(quoted(name)) for name in step.hidden_columns]
    names = [step.partition_name(name) for name in plan.partition_columns]
    columns += [
        partition_string(fn.col(quoted(logical)), types[logical]).alias(name)
        for logical, name in zip(plan.partition_columns, names, strict=True)
    ]
    return frame.select(*columns), names


def _renamed(column: Column, data_type: DataType, target: pa.Field) -> Column:
    if isinstance(data_type, StructType | ArrayType | MapType):
        kind = _named_type(data_type, target.type)
        if kind != to_spark_type(data_type):
            column = column.cast(kind)
    number = _id_of(target)
    return (
        column.alias(target.name)
        if number is None
        else column.alias(target.name, metadata={_SPARK_ID: number})
    )


def _named_type(data_type: DataType, target: pa.DataType) -> spark_types.DataType:
    """The Spark type of a column, with the names and ids of its fields in files.

    All fields are nullable, because Spark does not cast to a required field. The rows are checked elsewhere.
    """
    from pyspark.sql import types as t

    match data_type:
        case StructType():
            fields = []
            for field, named in zip(data_type, target, strict=True):
                number = _id_of(named)
                fields.append(
                    t.StructField(
                        named.name,
                        _named_type(field.data_type, named.type),
                        True,
                        None if number is None else {_SPARK_ID: number},
                    )
                )
            return t.StructType(fields)
        case ArrayType():
            return t.ArrayType(_named_type(data_type.element_type, target.value_type), True)
        case MapType():
            return t.MapType(
                _named_type(data_type.key_type, target.key_type),
                _named_type(data_type.value_type, target.item_type),
                True,
            )
        case _:
            return to_spark_type(data_type)


def _id_of(field: pa.Field) -> int | None:
    number = (field.metadata or {}).get(_ARROW_ID)
    return None if number is None else int(number)


def _has_nested_void(data_type: DataType) -> bool:
    return any(inner == VOID or _has_nested_void(inner) for inner in _inner(data_type))


def _inner(data_type: DataType) -> Iterator[DataType]:
    match data_type:
        case StructType():
            yield from (field.data_type for field in data_type)
        case ArrayType():
            yield data_type.element_type
        case MapType():
            yield from (data_type.key_type, data_type.value_type)


def _has_nested_ids(field: pa.Field) -> bool:
    """Whether an element of a list, or a key or value of a map, has an id."""
    kind = field.type
    if pa.types.is_struct(kind):
        return any(_has_nested_ids(child) for child in kind)
    if pa.types.is_map(kind):
        sides = [kind.key_field, kind.item_field]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        sides = [kind.value_field]
    else:
        return False
    return any(_id_of(side) is not None or _has_nested_ids(side) for side in sides)
