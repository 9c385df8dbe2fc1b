"""Source files as a DataFrame that hides nothing: what does not fit is an error, never a null."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.errors import DeltaError, JobError, SchemaMismatchError
from delta_core.schema.types import BOOLEAN, STRING, StructField, StructType
from spark_jobs.failures import ViolationToken, as_delta_error
from spark_jobs.file_uris import escape_glob
from spark_jobs.loading.csv_files import read_csv
from spark_jobs.loading.delta_source import read_delta
from spark_jobs.loading.json_lines import read_json_lines
from spark_jobs.loading.shaping import shaped
from spark_jobs.loading.source_params import Source
from spark_jobs.loading.string_casts import cast_string
from spark_jobs.reader.native_scan import UNFILTERED
from spark_jobs.schema import to_spark_type
from spark_jobs.writer.checks import row_json
from spark_jobs.writer.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARQUET_OPTIONS = {
    # Without it the columns are those of one file, and what the others have besides is dropped silently.
    "mergeSchema": "true",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # `where` may compare floating-point numbers, by which files must not be left out.
    **UNFILTERED,
}
_NOTE = "__deltaward_note_"
_NO_NOTES = StructType(())


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSource:
    """The source's rows with notes about each: nothing in them fails.

    Attributes:
        frame: the rows; text that is not of its column's type is null. The columns of `notes` stand last.
        casts: the columns of CSV text that were cast, and to which type.
        notes: for each cast a boolean, whether its text was not of the type; then the row's text as JSON.
            Empty for a source that is not cast.
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
) -> DataFrame:
    """The source's rows, with `select` applied.

    Args:
        spark: the session.
        source: the files.
        types: the types for a CSV source's columns when the source itself names none.
        token: marks the error of a CSV value that is not of its column's type; the number it carries is
            the column's position.
        exact: whether text that its column's type would round or cut is not of the type.
        show_rows: whether that error holds the value.

    Raises:
        JobError: a file is not there, cannot be read, or is not UTF-8.
        SchemaMismatchError: CSV files have other columns than the source's schema.
    """
    return _opened(
        spark,
        source,
        lambda frame: _typed(frame, source, types, token, exact=exact, show_rows=show_rows),
        (),
        types=types,
        token=token,
        exact=exact,
    )


def watch_source(
    spark: SparkSession, source: Source, *, types: StructType | None, exact: bool = True
) -> WatchedSource:
    """The source's rows as `read_source` would give them, noting what it would fail at.

    Raises:
        JobError, SchemaMismatchError: as `read_source`.
    """
    from pyspark.sql import functions as fn

    casts: list[StructField] = []
    notes: list[StructField] = []

    def noted(frame: DataFrame) -> DataFrame:
        columns, flags = [], []
        for name, field in _cast_to(frame, source, types):
            text = fn.col(quoted(name))
            if field is None:
                columns.append(text)
                continue
            value, wrong = cast_string(text, field.data_type, exact=exact)
            columns.append(value.alias(field.name))
            flags.append(wrong.alias(f"{_NOTE}{len(casts)}"))
            notes.append(StructField(name=f"{_NOTE}{len(casts)}", data_type=BOOLEAN))
            casts.append(field)
        if casts:
            notes.append(StructField(name=f"{_NOTE}text", data_type=STRING))
            flags.append(row_json(frame.columns).alias(f"{_NOTE}text"))
        return frame.select(*columns, *flags)

    frame = _opened(spark, source, noted, notes, types=types, token=ViolationToken(), exact=exact)
    return WatchedSource(frame=frame, casts=tuple(casts), notes=StructType(tuple(notes)))


def _opened(
    spark: SparkSession,
    source: Source,
    typed: Callable[[DataFrame], DataFrame],
    kept: Sequence[StructField],
    *,
    types: StructType | None,
    token: ViolationToken,
    exact: bool,
) -> DataFrame:
    """The source's rows, CSV text made `typed`, shaped; the columns of `kept` go past `select`."""
    paths = [escape_glob(uri) for uri in source.uris]
    try:
        if source.format == "csv":
            frame = typed(read_csv(spark, paths, source.options))
        elif source.format == "json":
            given = None if source.select else types
            frame = read_json_lines(spark, source, paths=paths, types=given, token=token, exact=exact)
        elif source.format == "delta":
            frame = read_delta(spark, source)
        else:
            frame = spark.read.options(**{**_PARQUET_OPTIONS, **source.options}).parquet(*paths)
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
            fix=f"Check {', '.join(source.uris[:3])} and the expressions of select",
        ) from error
    return frame


def _typed(
    frame: DataFrame,
    source: Source,
    types: StructType | None,
    token: ViolationToken,
    *,
    exact: bool,
    show_rows: bool,
) -> DataFrame:
    """CSV text as typed columns; text that is not of the type fails the job when it is met."""
    from pyspark.sql import functions as fn

    columns = []
    for position, (name, field) in enumerate(_cast_to(frame, source, types)):
        text = fn.col(quoted(name))
        if field is None:
            columns.append(text)
            continue
        value, mistyped = cast_string(text, field.data_type, exact=exact)
        shown = fn.to_json(fn.struct(text.alias(name))) if show_rows else fn.lit("{}")
        failure = fn.raise_error(fn.concat(fn.lit(token.mark(position)), shown))
        guarded = fn.when(mistyped, failure.cast(to_spark_type(field.data_type))).otherwise(value)
        columns.append(guarded.alias(field.name))
    return frame.select(*columns)


def _cast_to(
    frame: DataFrame, source: Source, types: StructType | None
) -> list[tuple[str, StructField | None]]:
    """For each column of a CSV source the field that its text is cast to; None where it stays text."""
    if source.schema is not None:
        _require_columns(frame, source.schema)
        types = source.schema
    elif source.select or types is None:
        types = StructType(())
    found = [(name, types.find(name)) for name in frame.columns]
    return [(name, None if field is None or field.data_type == STRING else field) for name, field in found]


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
