"""CSV files as RFC 4180 has them, in UTF-8; what cannot be read exactly is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from delta_core.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONS: Final = {
    "header": "true",
    "mode": "FAILFAST",
    # Compares each file's header with the columns, so that a file with another order is not misread.
    "enforceSchema": "false",
    # A quote inside quotes is doubled; Spark's own default is a backslash before it.
    "escape": '"',
    # Text after a closing quote is no CSV: a file whose quotes are escaped otherwise is not misread.
    "unescapedQuoteHandling": "RAISE_ERROR",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_PLAIN: Final = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
_ENCODINGS: Final = ("encoding", "charset")
_WHICH_FILES: Final = ("pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "linesep")


def read_csv(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """The rows of CSV files, all columns text.

    A value in quotes may hold line ends. Only files without such values can be read in parts, so the lines
    are looked through first, unless `multiLine` says how it is. Without `encoding` bytes must be UTF-8.

    Args:
        spark: the session.
        paths: files and directories, escaped for Spark.
        options: of Spark's CSV reader; they come before the defaults.

    Raises:
        JobError: a file holds bytes that are not UTF-8; says which.
    """
    given = {name.casefold(): value for name, value in options.items()}
    chosen = {name: value for name, value in _OPTIONS.items() if name.casefold() not in given}
    if "escape" not in given and "quote" in given:
        chosen["escape"] = given["quote"]
    encoded = any(name in given for name in _ENCODINGS)
    if encoded and "multiline" not in given:
        chosen["multiLine"] = "true"
    elif not encoded:
        folded = _look_through(spark, paths, options, quote=given.get("quote", '"'))
        chosen["multiLine"] = given.get("multiline", str(folded).lower())
    return spark.read.options(**{**chosen, **options}).csv(list(paths))


def _look_through(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], *, quote: str
) -> bool:
    """Whether quoted values may hold line ends: then, and only then, some line has an odd number of quotes.

    Cost: one pass over the files' bytes.
    """
    from pyspark.sql import functions as fn

    which = {name: value for name, value in options.items() if name.casefold() in _WHICH_FILES}
    lines = spark.read.options(**{**_PLAIN, **which}).text(list(paths))
    value = fn.col("value")
    odd = fn.lit(False)
    if quote:
        odd = (fn.length(value) - fn.length(fn.replace(value, fn.lit(quote), fn.lit("")))) % 2 == 1
    elsewhere = fn.when(~fn.is_valid_utf8(value), fn.col("_metadata.file_path"))
    found = lines.agg(fn.max(elsewhere).alias("not_utf8"), fn.max(odd).alias("odd")).collect()[0]
    if found["not_utf8"] is not None:
        raise JobError(
            "A CSV file of the source is not UTF-8.",
            cause=f"{found['not_utf8']} holds bytes that are no UTF-8",
            fix="Say its encoding, such as source.options: {encoding: ISO-8859-1}",
        )
    return bool(found["odd"])
