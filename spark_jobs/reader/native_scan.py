"""An explicit set of Parquet files as a DataFrame, read by Spark's Parquet reader.

For the design and its measurements, see docs/adr/2026-11-21-spark-read-path.md.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.schema.types import (
    DOUBLE,
    FLOAT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from spark_jobs.file_uris import base_name, encode_as_java, escape_glob
from spark_jobs.reader.data_files import DataFiles, hive_base
from spark_jobs.schema import to_spark, to_spark_type
from spark_jobs.scoped_conf import scoped_conf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MAP_LITERAL_LIMIT = 16
"""Up to this number of files, partition values come from a map literal; above, from a broadcast join."""

_LISTING_CONF = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "16"}
_OPTIONS = {
    # A session may be configured to skip such files; a missing file must be an error, not missing rows.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    # Dates and times are in the proleptic Gregorian calendar. Old files of Spark record that they are not.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
UNFILTERED = {
    "parquet.filter.stats.enabled": "false",
    "parquet.filter.columnindex.enabled": "false",
    "parquet.filter.dictionary.enabled": "false",
    "parquet.filter.bloom.enabled": "false",
}
"""Options that make Spark read all row groups and pages, for any filter.

Statistics in a file exclude NaN, which is greater than all numbers, and a dictionary distinguishes -0.0 from
0.0. So a filter on floating-point numbers that Spark pushes down to the Parquet reader would lose rows.
"""


def native_scan(
    spark: SparkSession,
    files: DataFiles,
    *,
    schema: StructType,
    partition_columns: Sequence[str],
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> DataFrame:
    """The rows of `files` (at least one file), with the table's columns in the table's order.

    Args:
        metadata: additional columns, each with its field of Spark's `_metadata`.
    """
    data_schema = StructType(tuple(f for f in schema if f.name not in partition_columns))
    partition_fields = [f for name in partition_columns for f in schema if f.name == name]
    base = hive_base(files, partition_columns) if len(set(files.partitions)) > 1 else None
    if base is not None:
        all_fields = StructType((*data_schema.fields, *partition_fields))
        frame = scan_files(spark, files, all_fields, base_path=base, metadata=metadata)
    else:
        frame = scan_files(spark, files, data_schema, metadata=metadata)
        if len(set(files.partitions)) == 1:
            frame = _with_constants(frame, partition_fields, files)
        else:
            frame = with_partition_values(spark, frame, partition_fields, files)
    return frame.select(*[_quoted(name) for name in (*(field.name for field in schema), *metadata)])


def scan_files(
    spark: SparkSession,
    files: DataFiles,
    schema: StructType,
    *,
    base_path: str | None = None,
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> DataFrame:
    """The rows of the files with exactly these columns. A column that is missing in a file is null.

    Args:
        base_path: the directory below which directories are partitions.
        metadata: additional columns, each with its field of Spark's `_metadata`. They are selected here,
            because `_metadata` is not available after the join that may add partition values.
    """
    reader = spark.read.schema(to_spark(schema)).options(**_OPTIONS)
    if _has_floating(schema):
        reader = reader.options(**UNFILTERED)
    if base_path is not None:
        reader = reader.option("basePath", base_path)
    with scoped_conf(spark, _LISTING_CONF):
        frame = reader.parquet(*[escape_glob(f"{files.root}/{path}") for path in files.paths])
        # Connect lists the files during analysis, so the analysis must run while the setting is in place.
        _ = frame.columns
    if not metadata:
        return frame
    file_metadata = frame.metadataColumn("_metadata")
    return frame.select("*", *[file_metadata.getField(field).alias(name) for name, field in metadata.items()])


def _has_floating(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_floating(field.data_type) for field in kind)
    if isinstance(kind, ArrayType):
        return _has_floating(kind.element_type)
    if isinstance(kind, MapType):
        return _has_floating(kind.key_type) or _has_floating(kind.value_type)
    return kind in (FLOAT, DOUBLE)


def _with_constants(frame: DataFrame, fields: Sequence[StructField], files: DataFiles) -> DataFrame:
    for field, value in zip(fields, files.partitions[0], strict=True):
        frame = frame.withColumn(field.name, _literal(value, field))
    return frame


def with_partition_values(
    spark: SparkSession, frame: DataFrame, fields: Sequence[StructField], files: DataFiles
) -> DataFrame:
    """Add each row's partition values, looked up by the name of its file."""
    from pyspark.sql import functions as fn

    metadata = frame.metadataColumn("_metadata")
    names = [base_name(path) for path in files.paths]
    if len(set(names)) == len(names):
        key, keys = metadata.getField("file_name"), [encode_as_java(name) for name in names]
    else:
        # `_metadata.file_path` always has one slash after the scheme.
        root = "file:" + files.root.removeprefix("file://")
        key = metadata.getField("file_path")
        keys = [encode_as_java(f"{root}/{path}") for path in files.paths]
    if len(files) <= MAP_LITERAL_LIMIT:
        pairs = [
            entry
            for name, values in zip(keys, files.partitions, strict=True)
            for entry in (
                fn.lit(name),
                fn.struct(
                    *[
                        _literal(value, field).alias(field.name)
                        for value, field in zip(values, fields, strict=True)
                    ]
                ),
            )
        ]
        kind = to_spark(StructType(tuple(replace(field, nullable=True) for field in fields)))
        # A file that is not in the mapping must be an error, not null values.
        unknown = fn.raise_error(fn.concat(fn.lit("no partition values for the file "), key))
        found = fn.coalesce(fn.create_map(*pairs)[key], unknown.cast(kind))
        return frame.withColumns({field.name: found.getField(field.name) for field in fields})
    return _with_joined_values(spark, frame, key, keys, fields, files)


def _with_joined_values(
    spark: SparkSession,
    frame: DataFrame,
    key: Column,
    keys: Sequence[str],
    fields: Sequence[StructField],
    files: DataFiles,
) -> DataFrame:
    from pyspark.sql import functions as fn

    marker = f"__deltaward_{uuid.uuid4().hex}"
    columns = {f"{marker}_key": pa.array(keys, pa.string())}
    for position in range(len(fields)):
        strings = [values[position] for values in files.partitions]
        columns[f"{marker}_{position}"] = pa.array(strings, pa.string())
    values = [
        fn.col(f"{marker}_{position}").cast(to_spark_type(field.data_type)).alias(field.name)
        for position, field in enumerate(fields)
    ]
    # A file that is not in the mapping must be an error, not null values or lost rows.
    found = fn.struct(*values).alias(f"{marker}_values")
    mapping = spark.createDataFrame(pa.table(columns)).select(f"{marker}_key", found)
    joined = frame.withColumn(f"{marker}_key", key).join(fn.broadcast(mapping), f"{marker}_key", "left")
    unknown = fn.raise_error(fn.concat(fn.lit("no partition values for the file "), fn.col(f"{marker}_key")))
    checked_values = fn.coalesce(
        fn.col(f"{marker}_values"), unknown.cast(mapping.schema[f"{marker}_values"].dataType)
    )
    return (
        joined.withColumn(f"{marker}_values", checked_values)
        .withColumns({field.name: fn.col(f"{marker}_values").getField(field.name) for field in fields})
        .drop(f"{marker}_key", f"{marker}_values")
    )


def _literal(value: str | None, field: StructField) -> Column:
    from pyspark.sql import functions as fn

    return fn.lit(value).cast(to_spark_type(field.data_type))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
