"""The files of a source: each is read, and the columns that their directories add are strings.

Spark's readers skip files without a word: files whose name begins with `_` or `.`, also when they are named,
and files in directories below a directory, unless the directories are partitions (`code=007`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from delta_core.errors import JobError, SchemaMismatchError
from spark_jobs.file_uris import base_name, escape_glob, is_hidden

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STRICT: Final = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
"""Options of every reader: a file that cannot be read is an error."""

_CHOICE_OPTIONS: Final = (
    "basepath",
    "modifiedafter",
    "modifiedbefore",
    "pathglobfilter",
    "recursivefilelookup",
)
_UNFINISHED: Final = "._COPYING_"
_SHOWN_FILES: Final = 3


def choice_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of a reader's options that choose files."""
    return {name: value for name, value in options.items() if name.casefold() in _CHOICE_OPTIONS}


def read_lines(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """The files' lines in the column `value`, then the directories' columns as strings.

    Args:
        spark: the session.
        paths: files and directories, escaped for Spark.
        options: options that choose files, and `lineSep`.
    """
    lines = spark.read.options(**{**STRICT, **options}).text(list(paths))
    if len(lines.columns) == 1:
        return lines
    return spark.read.options(**{**STRICT, **options}).schema(as_strings(lines)).text(list(paths))


def as_strings(frame: DataFrame) -> str:
    """The frame's columns as strings, as DDL. Directories' values are then exactly their names."""
    return ", ".join(f"`{name.replace('`', '``')}` STRING" for name in frame.columns)


def directory_columns(
    spark: SparkSession, uris: Sequence[str], options: Mapping[str, str]
) -> tuple[str, ...]:
    """The columns that the source's directories add, such as `code` for `code=007`.

    Cost: no request for local files; else two listings of the source.

    Raises:
        JobError: Spark's readers would skip a file of the source.
    """
    for uri in uris:
        _require_readable(spark, uri)
    chosen = choice_options(options)
    names = {name.casefold() for name in chosen}
    if "basepath" not in names and all(map(_is_local_file, uris)):
        return ()
    paths = [escape_glob(uri) for uri in uris]
    lines = spark.read.options(**{**STRICT, **chosen}).text(paths)
    columns = tuple(lines.columns[1:])
    if chosen and _is_true(chosen, "recursivefilelookup"):
        return columns
    every = _files(spark, paths, {**chosen, "recursiveFileLookup": "true"})
    skipped = _outside_partitions(every) if columns else every - set(lines.inputFiles())
    if skipped:
        raise JobError(
            "The source has files that would be skipped.",
            cause=f"A directory below the source's directory has {_shown(skipped)}.",
            fix="Name the directories with the files in source.uris, or set source.options: "
            '{recursiveFileLookup: "true"} to read all of them.',
        )
    return columns


def require_distinct(of_files: Iterable[str], of_directories: Sequence[str]) -> None:
    """Refuse a column that both the files and their directories have: Spark would drop the files' values.

    Raises:
        SchemaMismatchError: there is such a column.
    """
    folded = {name.casefold(): name for name in of_files}
    both = [name for name in of_directories if name.casefold() in folded]
    if both:
        raise SchemaMismatchError(
            f"The column {both[0]!r} is in the source's files and in the names of their directories.",
            cause="The values of the files and those of the directories can differ.",
            fix=f"Rename the directories {both[0]}=..., or name the files in source.uris to use theirs.",
        )


def _require_readable(spark: SparkSession, uri: str) -> None:
    """Refuse a file that Spark skips because of its name. A directory with such a name is read."""
    name = base_name(uri.rstrip("/"))
    skipped = is_hidden(name) and not (name.startswith("_") and "=" in name)
    if not skipped and not name.endswith(_UNFINISHED):
        return
    if not _is_local_file(uri) and _files(spark, [escape_glob(uri)], {}):
        return
    raise JobError(
        f"Spark does not read the file {uri}.",
        cause=f"Spark skips files whose name begins with '_' or '.', or ends in '{_UNFINISHED}'. A directory "
        "with such a name has no files.",
        fix="Rename the file.",
    )


def _files(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> set[str]:
    return set(spark.read.options(**{**STRICT, **options}).text(list(paths)).inputFiles())


def _outside_partitions(files: set[str]) -> set[str]:
    """The files below fewer partition directories than others. Spark lists them, but does not read them."""
    levels = {file: sum("=" in part for part in file.split("/")[:-1]) for file in files}
    most = max(levels.values(), default=0)
    return {file for file, level in levels.items() if level < most}


def _shown(files: set[str]) -> str:
    first = sorted(files)[:_SHOWN_FILES]
    more = len(files) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def _is_local_file(uri: str) -> bool:
    return os.path.isfile(uri.removeprefix("file://"))


def _is_true(options: Mapping[str, str], wanted: str) -> bool:
    return any(name.casefold() == wanted and value.casefold() == "true" for name, value in options.items())
