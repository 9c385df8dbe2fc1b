"""COPY INTO: load files that the table has not loaded yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from delta_core.actions import SetTransaction
from delta_core.dml.commit_files import CommitMode
from delta_core.dml.metadata_update import TableDefinition
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    MissingDataFileError,
    PathEscapeError,
    SchemaMismatchError,
    UnsupportedSqlError,
)
from delta_core.run import Run
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store
from delta_core.transaction.commit_result import already_applied
from spark_jobs.engine_io import engine_io_of
from spark_jobs.failures import as_delta_error
from spark_jobs.file_uris import escape_glob
from spark_jobs.sql_statements.execution.assignment import assigned
from spark_jobs.sql_statements.execution.results import frame_of
from spark_jobs.sql_statements.execution.surroundings import Surroundings
from spark_jobs.sql_statements.statements import CopyInto
from spark_jobs.writer.write import WriteRequest, write_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS: Final = ("csv", "json", "orc", "parquet", "text")
"""The formats of files. Spark reads them without a package."""

APPLICATION: Final = "deltaward:copy-into"
"""The application whose version counts the commits of COPY INTO, so that only one of two at a time wins."""

FILE: Final = "deltaward:copy-into:"
"""The prefix of the application of each loaded file, before its URI."""

_ATTEMPTS: Final = 20
_COPY_OPTIONS: Final = frozenset({"force", "mergeschema"})
_RESULT = "num_affected_rows bigint, num_inserted_rows bigint, num_skipped_corrupt_files bigint"


def copy_into(statement: CopyInto, around: Surroundings) -> DataFrame:
    """Append the rows of the files that the table has not loaded yet, as one commit.

    The commit records each file by a `txn` action with the file's URI, so the rows and the record are one. A
    file that is recorded is not loaded again, even if its content has changed since, unless the copy option
    `force` is `true`. Of two statements that run at the same time, the second begins again.

    Raises:
        UnsupportedSqlError: the format, or a copy option, is not supported.
        MissingDataFileError: a file in FILES does not exist, or the location does not.
        PathEscapeError: the location is not below the allowed URIs.
        SchemaMismatchError: the files have other columns or types than the table.
        ConcurrentModificationError: other statements won too often.
    """
    if statement.file_format not in FORMATS:
        raise UnsupportedSqlError(
            f"COPY INTO from files of the format {statement.file_format.upper()} is not supported.",
            cause=f"The formats are {', '.join(name.upper() for name in FORMATS)}.",
            fix="Read the files with Spark, and write them with INSERT or spark_jobs.write.",
        )
    force, merge_schema = _copy_options(statement.copy_options)
    uri = around.uri(statement.table)
    paths = _paths(statement, around)
    store = open_store(uri, storage_options=around.storage_options, clock=around.clock)
    request = WriteRequest(
        mode=CommitMode.APPEND,
        definition=TableDefinition(merge_schema=merge_schema),
        engine_io=engine_io_of(around.engine_io),
        storage_options=around.storage_options,
    )
    listed = _files(paths, around, is_pattern=statement.pattern is not None)
    for _ in range(_ATTEMPTS):
        snapshot = Snapshot.load(store, clock=around.clock)
        recorded = snapshot.transactions
        files = [file for file in listed if force or FILE + file not in recorded]
        if not files or already_applied(snapshot, around.commit.txn) is not None:
            return frame_of(around.spark, _RESULT, [(0, 0, 0)])
        frame = _rows(statement, files, snapshot, around, merge_schema=merge_schema)
        result = write_to(frame, store, snapshot, request, run=_run(files, snapshot, around))
        if not result.already_applied:
            rows = int(result.metrics.rows or 0)
            return frame_of(around.spark, _RESULT, [(rows, rows, 0)])
    raise ConcurrentModificationError(
        "COPY INTO was overtaken by others too often.",
        cause=f"In each of {_ATTEMPTS} attempts another COPY INTO of the same table committed first.",
        fix="Run fewer of these statements at the same time.",
    )


def _run(files: list[str], snapshot: Snapshot, around: Surroundings) -> Run:
    """The run of the commit, which counts the statement and records its files."""
    last = snapshot.transactions.get(APPLICATION)
    now_ms = around.clock.now_ms()
    own = (around.commit.txn, around.commit.delivery)
    return Run(
        clock=around.clock,
        commit=replace(
            around.commit,
            txn=SetTransaction(
                app_id=APPLICATION, version=1 if last is None else last.version + 1, last_updated_ms=now_ms
            ),
            delivery=None,
            app_transactions=(
                *around.commit.app_transactions,
                *(key for key in own if key is not None),
                *(SetTransaction(app_id=FILE + file, version=1, last_updated_ms=now_ms) for file in files),
            ),
        ),
    )


def _copy_options(options: Mapping[str, str]) -> tuple[bool, bool]:
    """The values of `force` and `mergeSchema`."""
    values = {key.casefold(): value.casefold() for key, value in options.items()}
    unknown = sorted(set(values) - _COPY_OPTIONS)
    if unknown:
        raise UnsupportedSqlError(
            f"The copy option {unknown[0]} is not supported.",
            cause="The copy options are force and mergeSchema.",
            fix="Leave it out. Options of the reader belong into FORMAT_OPTIONS.",
        )
    for key, value in values.items():
        if value not in ("true", "false"):
            raise ConfigurationError(f"The copy option {key} cannot be {value!r}.", fix="Use true or false.")
    return values.get("force") == "true", values.get("mergeschema") == "true"


def _paths(statement: CopyInto, around: Surroundings) -> list[str]:
    """The paths, as patterns of Spark, at which the files are."""
    root = around.require_allowed(statement.location).rstrip("/")
    for name in (*statement.files, *(() if statement.pattern is None else (statement.pattern,))):
        if ".." in name or ":/" in name or (name.startswith("/") and statement.pattern is None):
            raise PathEscapeError(
                f"COPY INTO cannot load {name!r}.",
                cause="FILES and PATTERN are relative to the location, and stay below it.",
                fix="Write the path from the location on, or another location.",
            )
    if statement.files:
        return [f"{escape_glob(root)}/{escape_glob(name)}" for name in statement.files]
    if statement.pattern is not None:
        return [f"{escape_glob(root)}/{statement.pattern.lstrip('/')}"]
    return [escape_glob(root)]


def _files(paths: list[str], around: Surroundings, *, is_pattern: bool) -> list[str]:
    """The URIs of the files at some paths, as Spark lists them. Their content is not read."""
    try:
        found = around.spark.read.format("binaryFile").load(paths).select("path").collect()
    except Exception as error:
        converted = as_delta_error(error, doing="listing the files")
        if not isinstance(converted, MissingDataFileError):
            raise converted from error
        if is_pattern:
            return []
        raise MissingDataFileError(
            "COPY INTO found no file at its location.", cause=converted.cause, fix="Correct the location."
        ) from error
    return sorted({row["path"] for row in found})


def _rows(
    statement: CopyInto, files: list[str], snapshot: Snapshot, around: Surroundings, *, merge_schema: bool
) -> DataFrame:
    """The rows of the files with the table's columns and types."""
    from pyspark.sql import functions as fn

    reader = around.spark.read.format(statement.file_format).options(**statement.format_options)
    if "mode" not in {key.casefold() for key in statement.format_options}:
        reader = reader.option("mode", "FAILFAST")  # a malformed row is an error, and never a row of nulls
    try:
        frame = reader.load([escape_glob(file) for file in files])
        if statement.values:
            frame = frame.select(*[fn.expr(value) for value in statement.values])
    except Exception as error:
        raise as_delta_error(error, doing="reading the files") from error
    schema = snapshot.schema
    frame = _named(statement, frame, schema)
    return assigned(frame, schema, from_strings=() if statement.values else frame.columns)


def _named(statement: CopyInto, frame: DataFrame, schema: StructType) -> DataFrame:
    """The rows with the table's names, if the columns are given by position."""
    has_names = not (statement.file_format == "csv" and not _has_header(statement.format_options))
    by_position = statement.by_position or (not has_names and not statement.values)
    if statement.columns is None and not by_position:
        return frame
    names = list(statement.columns) if statement.columns is not None else list(schema.names)
    if statement.columns is None and len(frame.columns) < len(names):
        names = names[: len(frame.columns)]
    unknown = [name for name in names if schema.find(name) is None]
    if unknown or len(names) != len(frame.columns):
        raise SchemaMismatchError(
            f"The files have {len(frame.columns)} columns, and COPY INTO fills {len(names)}.",
            cause=f"The columns to be filled are {', '.join(names)}."
            + (f" The table has no column {unknown[0]!r}." if unknown else ""),
            fix="List the columns after the table, or read the names from the files (header = true).",
        )
    return frame.toDF(*names)


def _has_header(options: Mapping[str, Any]) -> bool:
    values = {key.casefold(): str(value).casefold() for key, value in options.items()}
    return values.get("header") == "true"
