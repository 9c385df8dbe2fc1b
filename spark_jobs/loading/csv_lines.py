"""A look through the lines of CSV files: how Spark must read the files, and which are refused.

Spark reads the lines of a file in parallel, but only when no quoted value contains a line end. Its parallel
reader drops lines of white space. Its other reader guesses the line end, and changes line ends in values when
it guesses. Neither notices a quote that is never closed, nor bytes that are not in the file's encoding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from delta_core.errors import JobError
from spark_jobs.loading.source_files import STRICT, choice_options, read_lines

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LF: Final = "\n"
CRLF: Final = "\r\n"

_UTF_8: Final = ("utf8", "utf-8", "utf_8")
_REPLACEMENT: Final = "\ufffd"
# No line has this character, so that a line is one value.
_NO_SEPARATOR: Final = "\uffff"
_NOT_BLANK: Final = r"[^\x00-\x20]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a file's values are written.

    Attributes:
        quote: the quote; empty when values are never quoted.
        escape: the character before a quote inside of quotes.
        separator: the string between two values.
        comment: the first character of lines that are comments; empty for none.
        encoding: the encoding; None for UTF-8.
    """

    quote: str
    escape: str
    separator: str
    comment: str
    encoding: str | None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Dialect:
        """The dialect that options of Spark's reader define, by their names in lower case."""
        quote = given.get("quote", '"')
        encoding = given.get("encoding", given.get("charset"))
        separator = given.get("sep", given.get("delimiter", ","))
        return cls(
            quote=quote,
            escape=given.get("escape", quote),
            separator="\t" if separator == r"\t" else separator,
            comment=given.get("comment", ""),
            encoding=None if encoding is None or encoding.casefold() in _UTF_8 else encoding,
        )

    def whole_record(self) -> str | None:
        """A regular expression for a line that is a record, with every quote that opens a value closed.

        A quote inside of a value that is not quoted is an ordinary character. None for a dialect with a
        separator of several characters. Quantifiers are possessive, which Java matches in a loop.
        """
        if len(self.separator) != 1 or not self.quote:
            return None
        separator = re.escape(self.separator)
        plain = rf"(?!{re.escape(self.quote)})[^{separator}]*+"
        value = rf"(?:{self.quoted_value()}[ \r]*+|{plain})"
        return rf"(?s)^(?:{value}{separator})*+{value}(?!.)"

    def quoted_value(self, *, closed: bool = True) -> str:
        """A regular expression for a quoted value. With `closed` False, its last quote may be missing."""
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        if self.escape == self.quote:
            inside = rf"(?:[^{quote}]++|{quote}{quote})*+"
        elif self.escape:
            inside = rf"(?:[^{quote}{escape}]++|{escape}(?:.|(?!.)))*+"
        else:
            inside = rf"[^{quote}]*+"
        return rf"{quote}{inside}" + (quote if closed else rf"(?:{quote}|(?!.))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How Spark must read the files.

    Attributes:
        multi_line: whether values may contain line ends. One task then reads a file.
        line_end: the line end to state; None for Spark's default, which takes each of LF, CRLF and CR.
        ends_in_cr: whether a carriage return at the end of a line's last value belongs to the line end.
    """

    multi_line: bool
    line_end: str | None = None
    ends_in_cr: bool = False


def find_reading(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], *, dialect: Dialect
) -> Reading:
    """Look through the files' lines to find out how to read them. Options that are given are not changed.

    Cost: one pass over the files' bytes; another one for files with lines that end in CR alone.

    Args:
        spark: the session.
        paths: files and directories, escaped for Spark.
        options: options of Spark's CSV reader.
        dialect: the dialect that the options define.

    Raises:
        JobError: bytes are not in the encoding, a quote is not closed, or line ends cannot be read exactly.
    """
    given = {name.casefold(): value for name, value in options.items()}
    line_end = given.get("linesep")
    chosen = choice_options(options)
    # A path that is named twice would be counted twice.
    paths = list(dict.fromkeys(paths))
    lines = _lines(spark, paths, chosen, dialect, line_end or LF)
    # Spark takes LF for a line end whatever lineSep is.
    seen = _look(lines, dialect, has_lf=line_end not in (None, LF))
    _require_decoded(seen["undecodable"], dialect)
    if seen["cr_between"] and line_end is None:
        return _of_old_line_ends(spark, paths, chosen, dialect)
    if seen["opens"] and seen["odd_files"]:
        _require_closed(lines, dialect)
    if seen["lf_between"] and not seen["opens"]:
        raise JobError(
            "A CSV file of the source has LF in a value that is not quoted.",
            cause=f"The option lineSep is {line_end!r}, but Spark also ends a line at LF.",
            fix="Quote the value, or leave out the option lineSep.",
        )
    spans_lines = bool(seen["opens"] or (seen["cr_inside"] and line_end is None))
    given_multi = given.get("multiline", "").casefold()
    if given_multi == "false" and (spans_lines or seen["blank"]):
        raise JobError(
            "A CSV file of the source cannot be read with the option multiLine false.",
            cause="A value has several lines, a quote is not closed, or a line has only white space.",
            fix="Leave out the option multiLine, or correct the file.",
        )
    multi_line = spans_lines or bool(seen["blank"]) or dialect.encoding is not None
    if given_multi:
        multi_line = given_multi == "true"
    if not multi_line or line_end is not None:
        return Reading(multi_line=multi_line)
    if not seen["ends_in_cr"]:
        return Reading(multi_line=True, line_end=LF)
    if not seen["ends_in_lf"]:
        return Reading(multi_line=True, line_end=CRLF)
    if seen["cr_before_quote"]:
        raise JobError(
            "The line ends of a CSV file of the source cannot be read exactly.",
            cause="Lines end in LF and in CRLF, and a quoted value at the end of a line ends in CR.",
            fix="Write the same line end after every record, or set source.options: {lineSep: ...}.",
        )
    return Reading(multi_line=True, line_end=LF, ends_in_cr=True)


def _lines(
    spark: SparkSession,
    paths: Sequence[str],
    chosen: Mapping[str, str],
    dialect: Dialect,
    line_end: str | None,
) -> DataFrame:
    """The lines in the column `value`, and the path of each line's file in the column `file`."""
    from pyspark.sql import functions as fn

    if dialect.encoding is None:
        lines = read_lines(spark, paths, {**chosen, **({} if line_end is None else {"lineSep": line_end})})
    else:
        # Spark's reader for text files has no encodings. This reader replaces what it cannot decode.
        as_lines = {
            **STRICT,
            **chosen,
            "encoding": dialect.encoding,
            "lineSep": line_end or LF,
            "multiLine": "true",
            "quote": "",
            "sep": _NO_SEPARATOR,
        }
        lines = spark.read.schema("value STRING").options(**as_lines).csv(list(paths))
    return lines.select("value", fn.col("_metadata.file_path").alias("file"))


def _look(lines: DataFrame, dialect: Dialect, *, has_lf: bool = False) -> Any:
    """One row with what is true for some line. With `has_lf`, a line may contain LF."""
    from pyspark.sql import functions as fn

    value = fn.col("value")
    undecodable = ~fn.is_valid_utf8(value) if dialect.encoding is None else value.contains(_REPLACEMENT)
    odd, opens = _has_odd_quotes(value, dialect), _opens_value(value, dialect)
    first_cr = fn.octet_length(fn.substring_index(value, "\r", 1))
    cr_inside = first_cr + 1 < fn.octet_length(value)
    unquoted = value
    if dialect.quote:
        unquoted = fn.regexp_replace(value, "(?s)" + dialect.quoted_value(closed=False), "")
    ends_in_cr = value.endswith("\r")
    before_quote = value.endswith("\r" + dialect.quote) | value.endswith(f"\r{dialect.quote}\r")
    # Every character up to the space is smaller than "!", and most lines begin with another one.
    blank = fn.when(value < "!", ~value.rlike(_NOT_BLANK) & ~value.isin("", "\r"))
    return lines.agg(
        fn.max(fn.when(undecodable, fn.col("file"))).alias("undecodable"),
        fn.max(fn.when(odd, opens)).alias("opens"),
        # Zero when every file has an even number of such lines, without grouping by file.
        fn.bit_xor(fn.when(odd, fn.xxhash64("file"))).alias("odd_files"),
        fn.max(cr_inside).alias("cr_inside"),
        fn.max(fn.when(cr_inside, unquoted.rlike("(?s)\r."))).alias("cr_between"),
        fn.max(unquoted.contains("\n") if has_lf else fn.lit(False)).alias("lf_between"),
        fn.max(ends_in_cr).alias("ends_in_cr"),
        fn.max(~ends_in_cr).alias("ends_in_lf"),
        fn.max(before_quote if dialect.quote else fn.lit(False)).alias("cr_before_quote"),
        fn.max(blank).alias("blank"),
    ).collect()[0]


def _has_odd_quotes(value: Column, dialect: Dialect) -> Column:
    """Whether the number of quotes is odd. In RFC 4180, exactly then a value continues in another line."""
    from pyspark.sql import functions as fn

    if not dialect.quote:
        return fn.lit(False)
    quotes = value
    if dialect.escape and dialect.escape != dialect.quote:
        for escaped in (dialect.escape * 2, dialect.escape + dialect.quote):
            quotes = fn.replace(quotes, fn.lit(escaped), fn.lit(""))
    width = len(dialect.quote.encode())
    others = fn.replace(quotes, fn.lit(dialect.quote), fn.lit(""))
    odd = (fn.octet_length(quotes) - fn.octet_length(others)) % (2 * width) == width
    return odd & ~value.startswith(dialect.comment) if dialect.comment else odd


def _opens_value(value: Column, dialect: Dialect) -> Column:
    """Whether a line with an odd number of quotes does not have its records' quotes closed."""
    from pyspark.sql import functions as fn

    pattern = dialect.whole_record()
    return fn.lit(True) if pattern is None else ~value.rlike(pattern)


def _require_decoded(file: str | None, dialect: Dialect) -> None:
    if file is None:
        return
    if dialect.encoding is None:
        raise JobError(
            "A CSV file of the source is not UTF-8.",
            cause=f"{file} contains bytes that are not UTF-8.",
            fix="Name the encoding, such as source.options: {encoding: ISO-8859-1}.",
        )
    raise JobError(
        f"A CSV file of the source is not in the encoding {dialect.encoding}.",
        cause=f"{file} contains bytes that the encoding does not define, or the character U+FFFD.",
        fix="Correct source.options.encoding or the file.",
    )


def _require_closed(lines: DataFrame, dialect: Dialect) -> None:
    """Refuse a file with values of several lines and an odd number of quotes: one of them is never closed."""
    from pyspark.sql import functions as fn

    value = fn.col("value")
    counted = (
        lines.where(_has_odd_quotes(value, dialect))
        .groupBy("file")
        .agg(fn.count("*").alias("lines"), fn.max(_opens_value(value, dialect)).alias("opens"))
        .where((fn.col("lines") % 2 == 1) & fn.col("opens"))
    )
    file = counted.agg(fn.min("file")).collect()[0][0]
    if file is not None:
        raise JobError(
            "A quote in a CSV file of the source is not closed.",
            cause=f"{file} has an odd number of quotes, so that a value would extend to the end of the file.",
            fix="Close the quote. Quote a value that contains a quote, and double that quote. If values are "
            'never quoted, set source.options: {quote: ""}.',
        )


def _of_old_line_ends(
    spark: SparkSession, paths: Sequence[str], chosen: Mapping[str, str], dialect: Dialect
) -> Reading:
    """How to read files in which CR is outside of quotes. CR then ends a line, as LF and CRLF do."""
    if dialect.encoding is None:
        seen = _look(_lines(spark, paths, chosen, dialect, None), dialect)
        if not seen["opens"] and not seen["blank"]:
            return Reading(multi_line=False)
    raise JobError(
        "The line ends of a CSV file of the source cannot be read exactly.",
        cause="Lines end in CR alone, and the file is not in UTF-8, or values have several lines, or a line "
        "has only white space.",
        fix="Write the files with LF or CRLF at the end of lines.",
    )
