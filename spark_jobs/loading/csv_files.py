"""CSV files as in RFC 4180, in UTF-8. A file that cannot be read exactly is refused."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from spark_jobs.expressions.columns import quoted
from spark_jobs.loading.csv_lines import Dialect, find_reading
from spark_jobs.loading.source_files import STRICT, as_strings, require_distinct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONS: Final = {
    **STRICT,
    "header": "true",
    "mode": "FAILFAST",
    # Compares each file's header with the columns, so that a file with a different order is not misread.
    "enforceSchema": "false",
    # A quote inside quotes is doubled; Spark's default is a backslash before it.
    "escape": '"',
    # Characters after a closing quote are an error, so that a file with a different escape is not misread.
    "unescapedQuoteHandling": "RAISE_ERROR",
    # A row with too few or too many values is an error, also when only some columns are selected.
    "columnPruning": "false",
}


def read_csv(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], *, directories: Sequence[str] = ()
) -> DataFrame:
    """The rows of CSV files, with all columns as strings.

    A value without characters is null, and `""` is an empty string, unless the option `nullValue` is given. A
    quoted value may contain line ends. Without the option `encoding`, files must be UTF-8.

    Args:
        spark: the session.
        paths: files and directories, escaped for Spark.
        options: options of Spark's CSV reader; they override the defaults.
        directories: the columns that directories add. They are last.

    Raises:
        JobError: the files' lines cannot be read exactly (see `find_reading`).
        SchemaMismatchError: a column is in the files and in the names of directories.
    """
    given = {name.casefold(): value for name, value in options.items()}
    chosen = {name: value for name, value in _OPTIONS.items() if name.casefold() not in given}
    if "escape" not in given and "quote" in given:
        chosen["escape"] = given["quote"]
    # Spark makes a value null that equals this string, and takes this string for a value without characters.
    chosen["nullValue"] = given.get("nullvalue", f"deltaward_null_{secrets.token_hex(8)}")
    reading = find_reading(spark, paths, options, dialect=Dialect.of(given))
    chosen["multiLine"] = given.get("multiline", str(reading.multi_line).lower())
    if reading.line_end is not None:
        chosen["lineSep"] = reading.line_end
    settings = {**chosen, **options}
    frame = spark.read.options(**settings).csv(list(paths))
    if directories:
        of_files = spark.read.options(**{**settings, "recursiveFileLookup": "true"}).csv(list(paths))
        require_distinct([name.removesuffix("\r") for name in of_files.columns], directories)
        if given.get("inferschema", "false").casefold() != "true":
            frame = spark.read.options(**settings).schema(as_strings(frame)).csv(list(paths))
    if not reading.ends_in_cr:
        return frame
    return _without_line_ends(frame, len(frame.columns) - len(directories) - 1, chosen["nullValue"])


def _without_line_ends(frame: DataFrame, last: int, null_value: str) -> DataFrame:
    """The rows without the CR that Spark left at the end of the values in the files' last column."""
    from pyspark.sql import functions as fn

    name = frame.columns[last]
    value = fn.col(quoted(name))
    if last == 0:
        # An empty line
        frame = frame.where(value.isNull() | (value != "\r"))
    rest = fn.nullif(fn.left(value, fn.length(value) - 1), fn.lit(null_value))
    whole = fn.when(value == "\r", fn.lit(None)).when(value.endswith("\r"), rest).otherwise(value)
    columns = [fn.col(quoted(other)) for other in frame.columns]
    columns[last] = whole.alias(name.removesuffix("\r"))
    return frame.select(*columns)
