"""Source files as a DataFrame. Data that does not fit is an error, never null."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.errors import DeltaError, JobError, SchemaMismatchError
from delta_core.jobs.params.source import Source
from delta_core.schema.types import BOOLEAN, STRING, StructField, StructType
from spark_jobs.expressions.checks import row_json
from spark_jobs.expressions.columns import quoted
from spark_jobs.failures import ViolationToken, as_delta_error
from spark_jobs.file_uris import escape_glob
from spark_jobs.loading.csv_files import read_csv
from spark_jobs.loading.delta_source import read_delta
from spark_jobs.loading.json_lines import read_json_lines
from spark_jobs.loading.shaping import shaped
from spark_jobs.loading.source_files import STRICT, directory_columns, require_distinct
from spark_jobs.loading.string_casts import cast_string
from spark_jobs.reader.native_scan import UNFILTERED
from spark_jobs.schema import to_spark_type
from spark_jobs.scoped_conf import scoped_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARQUET_OPTIONS = {
    **STRICT,
    # Without it, Spark uses the columns of one file and silently drops the additional columns of all others.
    "mergeSchema": "true",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # `where` may compare floating-point numbers, which must not prune files.
    **UNFILTERED,
}
_PARQUET_TYPES = {
    # What the types in files mean. Readers have no options for these settings of the session.
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    # `code=007` is not the number 7.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
_NOTE = "__deltaward_note_"
_NO_NOTES = StructType(())


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSource:
    """The source's rows with notes about mistyped values, instead of failures.

    Attributes:
        frame: the rows. A string that is not of its column's type is null. The columns of `notes` are last.
        casts: the CSV columns that were cast, with their types.
        notes: for each cast a boolean column that is true for a mistyped value; then the original row as
            JSON. Empty for a source without casts.
    """

    frame: DataFrame
    casts: tuple[StructField, ...] = ()
    notes: StructType = _NO_NOTES


def read_source(
    spark: SparkSession,
    source: Source,
    *,
    types: StructType | None,
    token: ViolationToken,
    exact: bool = True,
    show_rows: bool = True,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The source's rows, with `where`, `select` and `group_by` applied.

    Args:
        spark: the session.
        source: the files.
        types: the types of columns that are strings in the source, when the source has no schema.
        token: marks the error for a string that is not of its column's type. The mark contains the
            column's position.
        exact: whether to refuse strings that the column's type would round or truncate.
        show_rows: whether the error contains the value.
        storage_options: options of the store of a Delta table.

    Raises:
        JobError: a file is missing, cannot be read, or is not UTF-8.
        SchemaMismatchError: the columns of CSV files differ from the source's schema.
    """
    return _open_source(
        spark,
        source,
        lambda frame, names: _with_failing_casts(
            frame, _cast_targets(frame, source, types, names), token, exact=exact, show_rows=show_rows
        ),
        (),
        types=types,
        token=token,
        exact=exact,
        storage_options=storage_options,
    )


def watch_source(
    spark: SparkSession,
    source: Source,
    *,
    types: StructType | None,
    exact: bool = True,
    storage_options: Mapping[str, str] | None = None,
) -> WatchedSource:
    """The source's rows as from `read_source`, but with notes about mistyped values instead of failures.

    Raises:
        JobError, SchemaMismatchError: as for `read_source`.
    """
    from pyspark.sql import functions as fn

    casts: list[StructField] = []
    notes: list[StructField] = []

    def with_notes(frame: DataFrame, names: Collection[str] | None) -> DataFrame:
        columns, flags = [], []
        for name, field in _cast_targets(frame, source, types, names):
            string = fn.col(quoted(name))
            if field is None:
                columns.append(string)
                continue
            value, is_mistyped = cast_string(string, field.data_type, exact=exact)
            columns.append(value.alias(field.name))
            flags.append(is_mistyped.alias(f"{_NOTE}{len(casts)}"))
            notes.append(StructField(name=f"{_NOTE}{len(casts)}", data_type=BOOLEAN))
            casts.append(field)
        if casts:
            notes.append(StructField(name=f"{_NOTE}text", data_type=STRING))
            flags.append(row_json(frame.columns).alias(f"{_NOTE}text"))
        return frame.select(*columns, *flags)

    frame = _open_source(
        spark,
        source,
        with_notes,
        notes,
        types=types,
        token=ViolationToken(),
        exact=exact,
        storage_options=storage_options,
    )
    return WatchedSource(frame=frame, casts=tuple(casts), notes=StructType(tuple(notes)))


def _open_source(
    spark: SparkSession,
    source: Source,
    typed: Callable[[DataFrame, Collection[str] | None], DataFrame],
    kept: Sequence[StructField],
    *,
    types: StructType | None,
    token: ViolationToken,
    exact: bool,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read the source, apply `typed` to columns of strings, and shape the rows.

    Columns in `kept` survive `select`. `typed` casts all columns, or those with the given names.
    """
    paths = [escape_glob(uri) for uri in source.uris]
    try:
        if source.format == "csv":
            directories = directory_columns(spark, source.uris, source.options)
            frame = read_csv(spark, paths, source.options, directories=directories)
            if source.where is not None:
                frame = _read_before_filters(frame, directories)
            frame = typed(frame, None)
        elif source.format == "json":
            given = None if source.select else types
            directories = directory_columns(spark, source.uris, source.options)
            frame = read_json_lines(
                spark,
                source,
                paths=paths,
                types=given,
                token=token,
                exact=exact,
                directories=directories,
            )
        elif source.format == "delta":
            frame = read_delta(spark, source, storage_options=storage_options)
        else:
            directories = directory_columns(spark, source.uris, source.options)
            frame = _read_parquet(spark, source, paths, directories)
            frame = typed(frame, directories) if directories else frame
        flags = [field.name for field in kept if field.data_type == BOOLEAN]
        frame = shaped(frame, source, kept=[field.name for field in kept], flags=flags)
        _ = frame.columns
    except DeltaError:
        raise
    except Exception as error:
        failure = as_delta_error(error, doing="opening the source")
        raise JobError(
            "The source of the load cannot be read.",
            cause=failure.cause or failure.problem,
            fix=f"Check {', '.join(source.uris[:3])} and the expressions in where, select and group_by.",
        ) from error
    return frame


def _read_before_filters(frame: DataFrame, directories: Collection[str]) -> DataFrame:
    """The rows of CSV files, with columns on which Spark's reader cannot filter.

    The reader would silently drop a malformed row that a filter excludes. It filters only by plain columns,
    such as those of directories, which exclude whole files.
    """
    from pyspark.sql import functions as fn

    columns = []
    for name, kind in frame.dtypes:
        column = fn.col(quoted(name))
        is_plain = name in directories or kind != "string"
        columns.append(column if is_plain else fn.concat(column, fn.lit("")).alias(name))
    return frame.select(*columns)


def _read_parquet(
    spark: SparkSession, source: Source, paths: Sequence[str], directories: Sequence[str]
) -> DataFrame:
    """The rows of Parquet files. Types do not depend on the session; columns of directories are strings."""
    options = {**_PARQUET_OPTIONS, **source.options}
    with scoped_conf(spark, _PARQUET_TYPES):
        # A Connect session analyzes only now, so this must happen while the settings are in place.
        schema = spark.read.options(**options).parquet(*paths).schema
        if directories:
            of_files = spark.read.options(**{**options, "recursiveFileLookup": "true"}).parquet(*paths)
            require_distinct(of_files.columns, directories)
    return spark.read.options(**options).schema(schema).parquet(*paths)


def _with_failing_casts(
    frame: DataFrame,
    targets: Sequence[tuple[str, StructField | None]],
    token: ViolationToken,
    *,
    exact: bool,
    show_rows: bool,
) -> DataFrame:
    """The strings cast to their types. A string that is not of its type fails the job when it is read."""
    from pyspark.sql import functions as fn

    columns = []
    for position, (name, field) in enumerate(targets):
        string = fn.col(quoted(name))
        if field is None:
            columns.append(string)
            continue
        value, mistyped = cast_string(string, field.data_type, exact=exact)
        shown = fn.to_json(fn.struct(string.alias(name))) if show_rows else fn.lit("{}")
        failure = fn.raise_error(fn.concat(fn.lit(token.mark(position)), shown))
        guarded = fn.when(mistyped, failure.cast(to_spark_type(field.data_type))).otherwise(value)
        columns.append(guarded.alias(field.name))
    return frame.select(*columns)


def _cast_targets(
    frame: DataFrame, source: Source, types: StructType | None, names: Collection[str] | None
) -> list[tuple[str, StructField | None]]:
    """The field to cast each column to; None for a column that stays as it is.

    Only columns in `names` are cast; without `names`, all columns are.
    """
    if source.schema is not None:
        _require_columns(frame, source.schema)
        types = source.schema
    elif source.select or types is None:
        types = StructType(())
    cast = frame.columns if names is None else names
    found = [(name, types.find(name) if name in cast else None) for name in frame.columns]
    return [(name, None if field is None or field.data_type == STRING else field) for name, field in found]


def _require_columns(frame: DataFrame, schema: StructType) -> None:
    present = {name.casefold() for name in frame.columns}
    extra = [name for name in frame.columns if schema.find(name) is None]
    missing = [field.name for field in schema if field.name.casefold() not in present]
    if extra or missing:
        problems = [f"extra columns {extra}"] * bool(extra) + [f"missing columns {missing}"] * bool(missing)
        raise SchemaMismatchError(
            f"The columns of the source files differ from the source's schema: {'; '.join(problems)}.",
            cause=f"The schema has the columns {list(schema.names)}.",
            fix="Correct the files or source.schema.",
        )
