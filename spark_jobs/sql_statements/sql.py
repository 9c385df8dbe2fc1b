"""`spark_jobs.sql`: one SQL statement over tables of this library and of Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_core.boundary import public
from delta_core.errors import ConfigurationError, DeltaError, InvalidSqlError, SqlStatementError
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.transaction import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from spark_jobs.expressions.sql_semantics import SqlSemantics
from spark_jobs.failures import as_delta_error
from spark_jobs.sql_statements.execution.execute import execute
from spark_jobs.sql_statements.execution.surroundings import Surroundings
from spark_jobs.sql_statements.parsing.cursor import Bindings
from spark_jobs.sql_statements.parsing.parse import parse_statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@public
def sql(
    spark: SparkSession,
    statement: str,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    engine_io: str = EngineIO.AUTO,
    table_roots: Sequence[str] = (),
    tables: Mapping[str, str] | None = None,
    commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    **parameters: Any,
) -> DataFrame:
    """Run one SQL statement. Tables of this library are named as in Spark's catalog, or as `delta.`/path``.

    A query is a lazy DataFrame, as with `spark.sql`; its tables are read at the versions that they have
    during this call. Every other statement runs during the call. A statement that names no table of this
    library goes to Spark unchanged. docs/sql.md lists the statements.

    Args:
        spark: a classic or a Connect session.
        statement: one statement, with or without a semicolon.
        args: the values of the parameters: a mapping for `:name`, or a sequence for `?`. Values are strings,
            numbers, bools, bytes, dates, datetimes or None, and are never a part of the statement itself.
        storage_options: options of the tables' stores. Secrets among them are used in this process only.
        allowed_roots: paths or URIs. Absolute paths in a log, as those of a shallow clone, may lead below
            them when rows are read.
        engine_io: how Spark reads and writes files; see `spark_jobs.read`.
        table_roots: URIs. Every table of the statement must be below one of them; empty allows all.
        tables: names of tables in this statement, and their URIs. They hide the names of Spark's catalog.
        commit_properties: provenance and idempotency key of the commit.
        parameters: more values for `:name`.

    Returns:
        The rows, with delta-spark's column names; without columns for statements without a result.

    Cost: one or two requests for the session's settings, one statement of Spark for each table that is named
    without a path, and the cost of the verb.

    Raises:
        InvalidSqlError: the statement has a syntax error, by line and column, or a parameter has no value.
        UnsupportedSqlError: the statement or a clause is known, but not supported.
        SqlStatementError: Spark refuses the statement.
        TableNotFoundError: no table has the name.
        PathEscapeError: a table is not below `table_roots`.
        DeltaError: the errors of the verb.
    """
    around = Surroundings(
        spark=spark,
        semantics=SqlSemantics.of(spark),
        bindings=_bindings(args, parameters),
        storage_options=storage_options,
        allowed_roots=allowed_roots,
        engine_io=engine_io,
        table_roots=tuple(table_roots),
        tables={name.casefold(): uri for name, uri in (tables or {}).items()},
        commit=commit_properties,
    )
    parsed = parse_statement(statement, around.bindings, around.lexis)
    try:
        return execute(parsed, around)
    except DeltaError:
        raise
    except Exception as error:
        raise _spark_error(error) from error


def _bindings(args: Mapping[str, Any] | Sequence[Any] | None, parameters: Mapping[str, Any]) -> Bindings:
    if args is None or isinstance(args, Mapping):
        named = {**(args or {}), **parameters}
        if not all(isinstance(name, str) for name in named):
            raise ConfigurationError("A parameter's name is not a string.", fix="Pass args={'name': value}.")
        return Bindings(named=named)
    if isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise ConfigurationError(
            f"args cannot be {args!r}.", fix="Pass a mapping for :name, or a list of values for ?."
        )
    if parameters:
        raise ConfigurationError(
            "Both a list of values and named values are given.",
            cause="A statement has either :name or ? as parameters.",
            fix="Pass one of the two.",
        )
    return Bindings(positional=tuple(args))


def _spark_error(error: Exception) -> Exception:
    """Spark's error about a statement as a typed error; other exceptions as they are."""
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    if not isinstance(error, PySparkException):
        return error
    summary = " ".join(str(error).split("== SQL")[0].split("JVM stacktrace")[0].split())[:1000]
    if isinstance(error, ParseException):
        return InvalidSqlError(
            "Spark cannot parse the statement.", cause=summary, fix="Correct the syntax of the query."
        )
    if isinstance(error, AnalysisException):
        return SqlStatementError(
            "Spark refuses the statement.", cause=summary, fix="Check the names and types in the statement."
        )
    return as_delta_error(error, doing="running the statement")
