"""CSV files as in RFC 4180, in UTF-8. A file that cannot be read exactly is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from delta_core.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONS: Final = {
    "header": "true",
    "mode": "FAILFAST",
    # Compares each file's header with the columns, so that a file with a different order is not misread.
    "enforceSchema": "false",
    # A quote inside quotes is doubled; Spark's default is a backslash before it.
    "escape": '"',
    # Characters after a closing quote are an error, so that a file with a different escape is not misread.
    "unescapedQuoteHandling": "RAISE_ERROR",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_TEXT_OPTIONS: Final = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
_ENCODINGS: Final = ("encoding", "charset")
_FILE_OPTIONS: Final = ("pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "linesep")


def read_csv(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """The rows of CSV files, with all columns as strings.

    A quoted value may contain line ends. Spark can split only files without such values, so this scans the
    lines first, unless the option `multiLine` is given. Without the option `encoding`, files must be UTF-8.

    Args:
        spark: the session.
        paths: files and directories, escaped for Spark.
        options: options of Spark's CSV reader; they override the defaults.

    Raises:
        JobError: a file is not UTF-8. The error names the file.
    """
    given = {name.casefold(): value for name, value in options.items()}
    chosen = {name: value for name, value in _OPTIONS.items() if name.casefold() not in given}
    if "escape" not in given and "quote" in given:
        chosen["escape"] = given["quote"]
    encoded = any(name in given for name in _ENCODINGS)
    if encoded and "multiline" not in given:
        chosen["multiLine"] = "true"
    elif not encoded:
        multiline = _has_multiline_values(spark, paths, options, quote=given.get("quote", '"'))
        chosen["multiLine"] = given.get("multiline", str(multiline).lower())
    return spark.read.options(**{**chosen, **options}).csv(list(paths))


def _has_multiline_values(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], *, quote: str
) -> bool:
    """Whether quoted values contain line ends: exactly then a line has an odd number of quotes.

    Cost: one pass over the files' bytes.
    """
    from pyspark.sql import functions as fn

    file_options = {name: value for name, value in options.items() if name.casefold() in _FILE_OPTIONS}
    lines = spark.read.options(**{**_TEXT_OPTIONS, **file_options}).text(list(paths))
    value = fn.col("value")
    odd = fn.lit(False)
    if quote:
        odd = (fn.length(value) - fn.length(fn.replace(value, fn.lit(quote), fn.lit("")))) % 2 == 1
    invalid_file = fn.when(~fn.is_valid_utf8(value), fn.col("_metadata.file_path"))
    scan = lines.agg(fn.max(invalid_file).alias("not_utf8"), fn.max(odd).alias("odd")).collect()[0]
    if scan["not_utf8"] is not None:
        raise JobError(
            "A CSV file of the source is not UTF-8.",
            cause=f"{scan['not_utf8']} contains bytes that are not UTF-8.",
            fix="Name the encoding, such as source.options: {encoding: ISO-8859-1}.",
        )
    return bool(scan["odd"])
