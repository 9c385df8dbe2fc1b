"""The columns of data files as Spark's Parquet reader reads them, and the table's columns made of them.

Files have physical names, and no void columns. In the column mapping mode `id` the reader finds columns by
field id: `delta_core.schema.column_mapping` decides names and ids. Spark's reader converts older types to
wider ones, except 8- and 16-bit integers to decimals with fewer than 10 digits before the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping, ColumnMappingMode
from delta_core.schema.types import (
    DOUBLE,
    FLOAT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_core.table_features.type_widening import CHANGES_KEY
from spark_jobs.expressions.columns import quoted
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql import types as spark_types

_PARQUET_ID = "parquet.field.id"

_DIGITS_OF_INTEGERS = 10
"""Spark reads integers of up to 32 bits as decimals with this number of digits before the point or more."""

_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """How the columns of a table are read from its files.

    Attributes:
        schema: the columns to return, in order.
        constants: names of the columns that are constant in each file, in the order of the files' values.
        mapping: the table's column mapping.
    """

    schema: StructType
    constants: Sequence[str] = ()
    mapping: ColumnMapping = UNMAPPED

    @property
    def data_fields(self) -> list[StructField]:
        """The columns that the files contain."""
        return [field for field in self.schema if field.name not in self.constants]

    @property
    def constant_fields(self) -> list[StructField]:
        """The constants by physical name, which no other column of the files has."""
        by_name = {field.name: field for field in self.schema}
        return [
            replace(by_name[name], name=self.mapping.physical_name(by_name[name])) for name in self.constants
        ]

    @property
    def by_id(self) -> bool:
        """True when columns are found by field id."""
        return self.mapping.mode is ColumnMappingMode.ID

    @property
    def may_filter_by_statistics(self) -> bool:
        """False when the Parquet reader must not skip row groups and pages.

        Statistics in a file exclude NaN, and the reader finds statistics by name even where it finds columns
        by id.
        """
        return not self.by_id and not any(_has_floating(field.data_type) for field in self.data_fields)

    def read_schema(self) -> spark_types.StructType:
        """The schema for Spark's Parquet reader, without the constants.

        Raises:
            InvalidTableError: a column lacks the name or id that the mapping requires.
        """
        from pyspark.sql import types as spark_types

        fields = [_file_field(field, self.mapping) for field in self.data_fields]
        return spark_types.StructType([field for field in fields if field is not None])

    def columns(self) -> list[Column]:
        """The table's columns, computed from the columns of the files and the constants."""
        from pyspark.sql import functions as fn

        columns = []
        for field in self.schema:
            name = self.mapping.physical_name(field)
            if field.name in self.constants:
                column = fn.col(quoted(name))
            else:
                column = _table_column(fn.col(quoted(name)), field, field.data_type, self.mapping)
            columns.append(column.alias(field.name))
        return columns


def _file_field(field: StructField, mapping: ColumnMapping) -> spark_types.StructField | None:
    """The field in files; None when files cannot contain it."""
    from pyspark.sql import types as spark_types

    kind = _file_type(field, field.data_type, mapping)
    if kind is None:
        return None
    number = mapping.field_id(field)
    metadata = {} if number is None else {_PARQUET_ID: number}
    return spark_types.StructField(mapping.physical_name(field), kind, True, metadata)


def _file_type(
    field: StructField, data_type: DataType, mapping: ColumnMapping
) -> spark_types.DataType | None:
    """The type in files of a part of a field; None when files cannot contain it."""
    from pyspark.sql import types as spark_types

    match data_type:
        case StructType():
            fields = [_file_field(inner, mapping) for inner in data_type]
            present = [inner for inner in fields if inner is not None]
            return spark_types.StructType(present) if present else None
        case ArrayType():
            element = _file_type(field, data_type.element_type, mapping)
            return None if element is None else spark_types.ArrayType(element)
        case MapType():
            key = _file_type(field, data_type.key_type, mapping)
            value = _file_type(field, data_type.value_type, mapping)
            return None if key is None or value is None else spark_types.MapType(key, value)
        case DecimalType() if CHANGES_KEY in field.metadata:
            before_point = max(data_type.precision - data_type.scale, _DIGITS_OF_INTEGERS)
            return spark_types.DecimalType(min(before_point + data_type.scale, _MOST_DIGITS), data_type.scale)
        case _:
            return None if data_type == VOID else to_spark_type(data_type)


def _table_column(column: Column, field: StructField, data_type: DataType, mapping: ColumnMapping) -> Column:
    """A part of a field, as read from files, with the table's names and types, and with its void fields."""
    from pyspark.sql import functions as fn

    target = to_spark_type(data_type)
    read_as = _file_type(field, data_type, _without_ids(mapping))
    if read_as is None:
        return fn.lit(None) if data_type == VOID else fn.lit(None).cast(target)
    if not _has_void(data_type):
        return column if read_as == target else column.cast(target)
    match data_type:
        case StructType():
            inner_columns = [
                _table_column(
                    column.getField(mapping.physical_name(inner)), inner, inner.data_type, mapping
                ).alias(inner.name)
                for inner in data_type
            ]
            return fn.when(column.isNotNull(), fn.struct(*inner_columns))
        case ArrayType():
            return fn.transform(
                column, lambda item: _table_column(item, field, data_type.element_type, mapping)
            )
        case MapType():
            keyed = fn.transform_keys(
                column, lambda key, _: _table_column(key, field, data_type.key_type, mapping)
            )
            return fn.transform_values(
                keyed, lambda _, value: _table_column(value, field, data_type.value_type, mapping)
            )
    raise AssertionError(data_type)  # only these types contain others


def _without_ids(mapping: ColumnMapping) -> ColumnMapping:
    """The mapping to the same names. Types in files without ids can be compared with the table's types."""
    by_id = mapping.mode is ColumnMappingMode.ID
    return ColumnMapping(ColumnMappingMode.NAME, mapping.unmapped) if by_id else mapping


def _has_void(data_type: DataType) -> bool:
    return data_type == VOID or any(_has_void(part) for part in _parts(data_type))


def _has_floating(data_type: DataType) -> bool:
    return data_type in (FLOAT, DOUBLE) or any(_has_floating(part) for part in _parts(data_type))


def _parts(data_type: DataType) -> Sequence[DataType]:
    match data_type:
        case StructType():
            return [field.data_type for field in data_type]
        case ArrayType():
            return [data_type.element_type]
        case MapType():
            return [data_type.key_type, data_type.value_type]
        case _:
            return []
