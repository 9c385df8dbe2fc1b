"""The source of a MERGE. It is read once, because a second read could return different rows."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delta_core.errors import ConfigurationError, ConstraintViolationError, SchemaMismatchError
from delta_core.expressions.skipping import MAX_LISTED_VALUES
from delta_core.schema.types import StructField, StructType
from spark_jobs.dml.clauses import qualifiers
from spark_jobs.dml.pruning import KeyEquality, KeyValues, MatchFacts, listed_values
from spark_jobs.expressions.checks import Check, with_checks
from spark_jobs.expressions.columns import quoted
from spark_jobs.expressions.predicates import to_column
from spark_jobs.failures import ViolationToken, as_delta_error, violation
from spark_jobs.schema import from_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from spark_jobs.dml.clauses import Sql

FEW_ROWS = 5_000
"""Up to this number of source rows, all values of each key are listed, instead of only minimum and
maximum."""

_WIDTHS = {"string": 40, "binary": 100, "boolean": 1, "byte": 1, "short": 2, "integer": 4, "float": 4}


def _marker(name: str) -> str:
    return f"__deltaward_{name}_{uuid.uuid4().hex[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Internal column names of one merge, which differ from every column of the table and the source."""

    row: str = field(default_factory=lambda: _marker("row"))
    file: str = field(default_factory=lambda: _marker("file"))
    position: str = field(default_factory=lambda: _marker("position"))
    key: str = field(default_factory=lambda: _marker("key"))
    action: str = field(default_factory=lambda: _marker("action"))
    matched: str = field(default_factory=lambda: _marker("matched"))
    kind: str = field(default_factory=lambda: _marker("kind"))
    before: str = field(default_factory=lambda: _marker("before"))
    given: str = field(default_factory=lambda: _marker("given"))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSource:
    """The source's rows, read once and persisted.

    Attributes:
        frame: the rows with their alias, numbered in the column `names.row`.
        alias: the source's alias in the clauses.
        columns: the names of the source's columns, without `names.row`.
        schema: the columns with their types.
        rows: the number of rows.
        values: the source's values for each equality of the condition.
    """

    frame: DataFrame
    alias: str
    columns: tuple[str, ...]
    schema: StructType
    rows: int
    values: tuple[KeyValues, ...]


def find_alias(frame: DataFrame, strings: Sequence[str], *, target_alias: str) -> str | None:
    """The DataFrame's alias (`frame.alias(...)`), if the merge's SQL expressions use it.

    A DataFrame does not expose its alias. A qualifier is the alias when `qualifier.*` selects all columns.
    """
    from pyspark.errors import PySparkException

    for name in qualifiers(strings):
        if name.casefold() == target_alias.casefold():
            continue
        try:
            if frame.select(f"{quoted(name)}.*").columns == frame.columns:
                return name
        except PySparkException:
            continue
    return None


def checked_columns(frame: DataFrame) -> StructType:
    """The source's schema.

    Raises:
        SchemaMismatchError: two columns have the same name.
    """
    names = [name.casefold() for name in frame.columns]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise SchemaMismatchError(
            f"The source has the column {duplicates[0]!r} twice.",
            cause="Column names are compared without case.",
            fix="Drop or rename one of the columns.",
        )
    return from_spark(frame.schema)


def fix_source(
    frame: DataFrame,
    *,
    schema: StructType,
    alias: str,
    facts: MatchFacts,
    names: Names,
    checks: Sequence[Check] = (),
) -> MergeSource:
    """Read the source once, persist its rows on the executors, and collect its key values.

    Every later step reads the persisted rows. The merge fails when an executor is lost with its rows. They
    are not computed again, because a second read of the source may return different rows.

    Raises:
        ConstraintViolationError: a row violates a check.
        JobFailedError: Spark failed.
    """
    from pyspark.sql import functions as fn

    token = ViolationToken()
    columns = tuple(frame.columns)
    try:
        guarded = with_checks(frame, checks, token)
        numbered = guarded.withColumn(names.row, fn.monotonically_increasing_id())
        persisted = numbered.localCheckpoint(eager=True).alias(alias)
        aliased = StructType((StructField(name=alias, data_type=schema),))
        rows, values = _values(persisted, facts.equalities, aliased)
    except Exception as error:
        found = token.find(error)
        if found is not None:
            raise _check_violation(checks[found[0]], found[1]) from None
        raise as_delta_error(error, doing="reading the source of the merge") from error
    return MergeSource(frame=persisted, alias=alias, columns=columns, schema=schema, rows=rows, values=values)


def _check_violation(check: Check, row: str) -> ConstraintViolationError:
    return violation(check.name, check.text, row)


def _values(
    frame: DataFrame, equalities: Sequence[KeyEquality], schema: StructType
) -> tuple[int, tuple[KeyValues, ...]]:
    from pyspark.sql import functions as fn

    sides = [to_column(equality.source, schema) for equality in equalities]
    aggregates: list[Column] = [fn.count("*").alias("n")]
    for index, side in enumerate(sides):
        aggregates += [fn.min(side).alias(f"low{index}"), fn.max(side).alias(f"high{index}")]
    (row,) = frame.agg(*aggregates).toArrow().to_pylist()
    rows = int(row["n"])
    key_rows = frame.select(*_named(sides)).toArrow() if sides and 0 < rows <= FEW_ROWS else None
    found: list[KeyValues] = []
    for index, equality in enumerate(equalities):
        listed: tuple[Any, ...] | None = None
        if key_rows is not None:
            listed = listed_values(key_rows.column(f"v{index}"))
        elif rows and equality.lists:
            # One more than the limit of listed values, and one for null.
            distinct = frame.select(sides[index].alias("v")).distinct().limit(MAX_LISTED_VALUES + 2)
            listed = listed_values(distinct.toArrow().column("v"))
        found.append(KeyValues(low=row[f"low{index}"], high=row[f"high{index}"], listed=listed))
    return rows, tuple(found)


def _named(sides: Sequence[Column]) -> list[Column]:
    return [side.alias(f"v{index}") for index, side in enumerate(sides)]


def estimated_bytes(schema: StructType, columns: Sequence[str], rows: int) -> int:
    """The approximate size of `rows` rows of these columns in memory, in bytes."""
    width = 16
    for name in columns:
        found = schema.find(name)
        if found is not None:
            width += _WIDTHS.get(str(found.data_type), 8 if "<" not in str(found.data_type) else 200)
    return rows * width


def require_deterministic(frame: DataFrame, other: DataFrame, on: Column) -> None:
    """Check that `on` is a deterministic condition over the columns of the two frames.

    Raises:
        ConfigurationError: Spark refuses the condition.
    """
    from pyspark.errors import PySparkException

    try:
        _ = frame.join(other, on).columns
    except PySparkException as error:
        raise ConfigurationError(
            "The condition of the merge is not valid.",
            cause=str(error).splitlines()[0][:500],
            fix="Use columns of both sides and no random or non-deterministic function.",
        ) from error


def as_column(value: Sql) -> Column:
    """SQL text as a Spark column. A column is returned unchanged."""
    from pyspark.sql import functions as fn

    return fn.expr(value) if isinstance(value, str) else value
