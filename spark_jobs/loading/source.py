"""Source files as a DataFrame that hides nothing: what does not fit is an error, never a null."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.errors import JobError, SchemaMismatchError
from delta_core.schema.types import STRING, StructType
from spark_jobs.failures import ViolationToken, as_delta_error
from spark_jobs.file_uris import escape_glob
from spark_jobs.loading.params import Source
from spark_jobs.schema import type_to_ddl
from spark_jobs.writer.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARQUET_OPTIONS = {
    # Without it the columns are those of one file, and what the others have besides is dropped silently.
    "mergeSchema": "true",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_CSV_OPTIONS = {
    "header": "true",
    "mode": "FAILFAST",
    # Compares each file's header with the columns, so that a file with another order is not misread.
    "enforceSchema": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}


def read_source(
    spark: SparkSession, source: Source, *, types: StructType | None, token: ViolationToken
) -> DataFrame:
    """The source's rows, with `select` applied.

    Args:
        spark: the session.
        source: the files.
        types: the types for a CSV source's columns when the source itself names none.
        token: marks the error of a CSV value that is not of its column's type; the number it carries is
            the column's position.

    Raises:
        JobError: a file is not there or cannot be read.
        SchemaMismatchError: CSV files have other columns than the source's schema.
    """
    from pyspark.sql import functions as fn

    paths = [escape_glob(uri) for uri in source.uris]
    try:
        if source.format == "csv":
            frame = spark.read.options(**{**_CSV_OPTIONS, **source.options}).csv(paths)
            frame = _typed(frame, source, types, token)
        else:
            frame = spark.read.options(**{**_PARQUET_OPTIONS, **source.options}).parquet(*paths)
        if source.select:
            frame = frame.select(*[fn.expr(text).alias(name) for name, text in source.select.items()])
        _ = frame.columns
    except SchemaMismatchError:
        raise
    except Exception as error:
        failure = as_delta_error(error, doing="opening the source")
        raise JobError(
            "The source of the load cannot be read.",
            cause=failure.cause or failure.problem,
            fix=f"Check {', '.join(source.uris[:3])} and the expressions of select",
        ) from error
    return frame


def _typed(frame: DataFrame, source: Source, types: StructType | None, token: ViolationToken) -> DataFrame:
    """CSV text as typed columns; text that is not of the type fails the job when it is met."""
    if source.schema is not None:
        _require_columns(frame, source.schema)
        types = source.schema
    elif source.select or types is None:
        return frame
    from pyspark.sql import functions as fn

    columns = []
    for position, name in enumerate(frame.columns):
        field = types.find(name)
        text = fn.col(quoted(name))
        if field is None or field.data_type == STRING:
            columns.append(text)
            continue
        ddl = type_to_ddl(field.data_type)
        value = text.try_cast(ddl)
        wrong = fn.raise_error(
            fn.concat(fn.lit(token.mark(position)), fn.to_json(fn.struct(text.alias(name))))
        )
        guarded = fn.when(text.isNotNull() & value.isNull(), wrong.cast(ddl)).otherwise(value)
        columns.append(guarded.alias(field.name))
    return frame.select(*columns)


def _require_columns(frame: DataFrame, schema: StructType) -> None:
    present = {name.casefold() for name in frame.columns}
    extra = [name for name in frame.columns if schema.find(name) is None]
    missing = [field.name for field in schema if field.name.casefold() not in present]
    if extra or missing:
        problems = [f"extra columns {extra}"] * bool(extra) + [f"missing columns {missing}"] * bool(missing)
        raise SchemaMismatchError(
            f"The source files have other columns than the source's schema: {'; '.join(problems)}.",
            cause=f"The schema has the columns {list(schema.names)}.",
            fix="Correct the files or source.schema.",
        )
