"""An explicit set of Parquet files as a DataFrame, read by Spark's Parquet reader.

For the design and its measurements, see docs/adr/2026-11-21-spark-read-path.md.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructField, StructType
from spark_jobs.expressions.columns import quoted
from spark_jobs.file_uris import ROW_INDEX, escape_glob, identifying_field, metadata_value
from spark_jobs.reader.data_files import DataFiles, hive_base
from spark_jobs.reader.file_columns import FileColumns
from spark_jobs.reader.row_masks import CHUNK_BITS, Masks, RowMasks, is_listed, make_masks
from spark_jobs.schema import to_spark, to_spark_type
from spark_jobs.scoped_conf import scoped_conf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

MAP_LITERAL_LIMIT = 16
"""Up to this number of files, partition values come from a map literal; above, from a broadcast join."""

_LISTING_CONF = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "16"}
_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
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
    constants: Sequence[str],
    metadata: Mapping[str, str],
    mapping: ColumnMapping,
    masks: RowMasks | None,
) -> DataFrame:
    """The rows of `files` (at least one file), with the table's columns in the table's order.

    Args:
        constants: the columns that are constant in each file, in the order of the files' values, as the
            schema spells them.
        metadata: additional columns, each with its field of Spark's `_metadata`.
        mapping: the names and ids of the columns in the files.
        masks: the rows of each file; None for all rows.

    A file may occur more than once, with other values or rows. Spark reads it once.
    """
    columns = FileColumns(schema=schema, constants=constants, mapping=mapping)
    if columns.by_id:
        # Spark reads this setting when the rows are read, so it must remain. It has an effect only on reads
        # with ids in their schema.
        spark.conf.set(_FIELD_IDS, "true")
    if masks is not None or len(set(files.paths)) < len(files):
        frame = _joined(spark, files, columns, metadata, masks)
    else:
        frame = _whole(spark, files, columns, metadata)
    return frame.select(*columns.columns(), *[quoted(name) for name in metadata])


def _whole(
    spark: SparkSession, files: DataFiles, columns: FileColumns, metadata: Mapping[str, str]
) -> DataFrame:
    fields = columns.constant_fields
    is_single = len(set(files.partitions)) == 1
    base = None if is_single else hive_base(files, [field.name for field in fields])
    reader = _reader(spark, unfiltered=not columns.may_filter_by_statistics)
    if base is not None:
        read_schema = columns.read_schema()
        for field in fields:
            read_schema = read_schema.add(field.name, to_spark_type(field.data_type))
        return _opened(spark, reader.schema(read_schema).option("basePath", base), files, metadata)
    frame = _opened(spark, reader.schema(columns.read_schema()), files, metadata)
    if is_single:
        return _with_constants(frame, fields, files)
    return _with_partition_values(spark, frame, fields, files)


def _joined(
    spark: SparkSession,
    files: DataFiles,
    columns: FileColumns,
    metadata: Mapping[str, str],
    masks: RowMasks | None,
) -> DataFrame:
    """The chosen rows of the files, by a join with one row for each occurrence of a file.

    That row has the constants and, up to a limit, the mask.
    """
    from pyspark.sql import functions as fn

    marker = f"__deltaward_{uuid.uuid4().hex}"
    key, position, index, words = (f"{marker}_{name}" for name in ("key", "position", "index", "words"))
    paths = sorted(set(files.paths))
    distinct = DataFiles(root=files.root, paths=paths, partitions=[()] * len(paths))
    key_field, keys = _file_keys(distinct)
    reader = _reader(spark, unfiltered=not columns.may_filter_by_statistics).schema(columns.read_schema())
    wanted = {key: key_field, position: ROW_INDEX, **metadata}
    frame = _opened(spark, reader, distinct, wanted)

    key_of = dict(zip(paths, keys, strict=True))
    fields = columns.constant_fields
    listing = _values_table(marker, [key_of[path] for path in files.paths], fields, files)
    listing = listing.append_column(index, pa.array(range(len(files)), pa.int32()))
    made = Masks() if masks is None else make_masks(spark, files.paths, masks)
    if made.words is not None:
        listing = listing.append_column(words, made.words)
    rows = _typed_values(spark.createDataFrame(listing), marker, fields, (index, words))
    place: Column = fn.col(position)
    if made.frame is None:
        joined = frame.join(fn.broadcast(rows), key, "left")
    elif made.chunked:
        chunk = f"{marker}_chunk"
        masked = made.frame.select(
            _chunk_key("file", fn.col("chunk")).alias(chunk), fn.col("words").alias(words)
        )
        joined = frame.join(fn.broadcast(rows), key, "left")
        joined = joined.withColumn(chunk, _chunk_key(index, fn.shiftright(place, CHUNK_BITS)))
        joined = joined.join(fn.broadcast(masked), chunk, "left")
        place = place.bitwiseAND((1 << CHUNK_BITS) - 1)
    else:
        masked = made.frame.select(fn.col("file").alias(index), fn.col("words").alias(words))
        joined = frame.join(fn.broadcast(rows.join(masked, index)), key, "left")
    if masks is None:
        chosen = fn.lit(True)
    else:
        listed = is_listed(fn.col(words), place)
        chosen = listed if masks.keeps_listed else ~listed
    # A file without a row in the join must be an error, not rows that are lost or not deleted.
    unknown = fn.raise_error(fn.concat(fn.lit("no values and deletion vector for the file "), fn.col(key)))
    return joined.where(fn.when(fn.col(index).isNull(), unknown.cast("boolean")).otherwise(chosen))


def _chunk_key(file: str, chunk: Column) -> Column:
    """One number for a chunk of a file: Spark joins by a number faster than by two columns."""
    from pyspark.sql import functions as fn

    return fn.col(file).cast("bigint") * (1 << 32) + chunk


def _reader(spark: SparkSession, *, unfiltered: bool) -> DataFrameReader:
    reader = spark.read.options(**_OPTIONS)
    return reader.options(**UNFILTERED) if unfiltered else reader


def _opened(
    spark: SparkSession, reader: DataFrameReader, files: DataFiles, metadata: Mapping[str, str]
) -> DataFrame:
    """The rows of the files, with additional columns from their field of Spark's `_metadata`.

    The columns are selected here, because `_metadata` is not available after a join.
    """
    with scoped_conf(spark, _LISTING_CONF):
        frame = reader.parquet(*[escape_glob(f"{files.root}/{path}") for path in files.paths])
        # Connect lists the files during analysis, so the analysis must run while the setting is in place.
        _ = frame.columns
    if not metadata:
        return frame
    file_metadata = frame.metadataColumn("_metadata")
    return frame.select("*", *[file_metadata.getField(field).alias(name) for name, field in metadata.items()])


def _with_constants(frame: DataFrame, fields: Sequence[StructField], files: DataFiles) -> DataFrame:
    for field, value in zip(fields, files.partitions[0], strict=True):
        frame = frame.withColumn(field.name, _literal(value, field))
    return frame


def _with_partition_values(
    spark: SparkSession, frame: DataFrame, fields: Sequence[StructField], files: DataFiles
) -> DataFrame:
    """Add each row's partition values, looked up by the name of its file."""
    from pyspark.sql import functions as fn

    key_field, keys = _file_keys(files)
    key = frame.metadataColumn("_metadata").getField(key_field)
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
    table = _values_table(marker, keys, fields, files)
    typed = _typed_values(spark.createDataFrame(table), marker, fields)
    # A file that is not in the mapping must be an error, not null values or lost rows.
    found = fn.struct(*[fn.col(quoted(field.name)) for field in fields]).alias(f"{marker}_values")
    mapping = typed.select(f"{marker}_key", found)
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


def _file_keys(files: DataFiles) -> tuple[str, list[str]]:
    """The field of Spark's `_metadata` with a different value for each file, and its values."""
    field = identifying_field(files.paths)
    return field, [metadata_value(field, files.root, path) for path in files.paths]


def _values_table(
    marker: str, keys: Sequence[str], fields: Sequence[StructField], files: DataFiles
) -> pa.Table:
    """The key of each file, and its values as strings."""
    columns = {f"{marker}_key": pa.array(keys, pa.string())}
    for position in range(len(fields)):
        strings = [values[position] for values in files.partitions]
        columns[f"{marker}_{position}"] = pa.array(strings, pa.string())
    return pa.table(columns)


def _typed_values(
    frame: DataFrame, marker: str, fields: Sequence[StructField], others: Sequence[str] = ()
) -> DataFrame:
    """The rows of `_values_table` with typed columns with the names of the fields."""
    from pyspark.sql import functions as fn

    values = [
        fn.col(f"{marker}_{position}").cast(to_spark_type(field.data_type)).alias(field.name)
        for position, field in enumerate(fields)
    ]
    kept = [name for name in others if name in frame.columns]
    return frame.select(f"{marker}_key", *values, *kept)


def _literal(value: str | None, field: StructField) -> Column:
    from pyspark.sql import functions as fn

    return fn.lit(value).cast(to_spark_type(field.data_type))
