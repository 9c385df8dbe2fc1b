"""Checks of arguments, which raise TypeError and ValueError where delta-spark does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql import Column, DataFrame

from spark_jobs.spark_errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from delta_core.merge.clauses import Sql

Flag = bool
"""A `bool` whose check is here, so that the error is the one that delta-spark raises."""


def condition_of(value: Any, *, what: str = "'condition'") -> Sql | None:
    """A condition, or None without one.

    Raises:
        ArgumentTypeError: it is neither a string nor a Column.
    """
    if value is None or isinstance(value, str | Column):
        return value
    raise ArgumentTypeError(
        f"{what} must be a Spark SQL Column or a string (expression in SQL syntax).",
        cause=f"It is of the type {type(value)}",
        fix="Pass SQL or a Column.",
    )


def values_of(value: Any, *, what: str) -> dict[str, Sql]:
    """A map from columns to expressions, as it is.

    Raises:
        ArgumentValueError: the argument is missing.
        ArgumentTypeError: it is not a dict, or a key or a value has another type.
    """
    fix = "Pass a dict such as {'price': 'price * 2'}."
    if value is None:
        raise ArgumentValueError(f"{what} cannot be {value}.", fix=fix)
    if not isinstance(value, dict):
        raise ArgumentTypeError(f"{what} must be a dict, found to be {type(value)}.", fix=fix)
    for name, expression in value.items():
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"Keys of dict in {what} must contain only strings with column names.",
                cause=f"Found {name!r} of the type {type(name)}",
                fix=fix,
            )
        if not isinstance(expression, str | Column):
            raise ArgumentTypeError(
                f"Values of dict in {what} must contain only Spark SQL Columns or strings (expressions in "
                "SQL syntax) as values.",
                cause=f"Found {expression!r} of the type {type(expression)}",
                fix=fix,
            )
    return dict(value)


def source_of(value: Any) -> DataFrame:
    """The source of a merge, as it is.

    Raises:
        ArgumentValueError: the argument is missing.
        ArgumentTypeError: it is not a DataFrame.
    """
    if value is None:
        raise ArgumentValueError(f"'source' in merge cannot be {value}.", fix="Pass a DataFrame.")
    if not isinstance(value, DataFrame):
        raise ArgumentTypeError("Type of 'source' in merge must be DataFrame.", fix="Pass a DataFrame.")
    return value


def needs(value: Any, kind: type, *, name: str) -> None:
    """Check the type of an argument.

    Raises:
        ArgumentValueError: the value has another type. As in delta-spark it is a ValueError.
    """
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return
    words = {str: "a string", int: "an int", bool: "a boolean", dict: "a dict"}
    raise ArgumentValueError(
        f"{name} needs to be {words[kind]} but got '{type(value)}'.", fix=f"Pass {words[kind]}."
    )


def must_be(value: Any, kind: type | tuple[type, ...], *, message: str) -> None:
    """Check the type of an argument of a builder.

    Raises:
        ArgumentTypeError: the value has another type.
    """
    if not isinstance(value, kind):
        refuse(message, value)


def refuse(message: str, *values: object) -> NoReturn:
    """Raises ArgumentTypeError for values of wrong types."""
    found = " ".join(f"Found {value!s} with type {type(value)}." for value in values)
    raise ArgumentTypeError(message, cause=found, fix="Pass a value of that type.")


def column_list(columns: tuple[Any, ...], *, what: str) -> list[str]:
    """Column names that are given one by one, or as one list.

    Raises:
        ArgumentTypeError: a name is not a string.
    """
    if len(columns) == 1 and isinstance(columns[0], list | tuple):
        columns = tuple(columns[0])
    for name in columns:
        must_be(name, str, message=f"{what} must be str.")
    return list(columns)


def hadoop_options(conf: Mapping[str, str] | None) -> dict[str, str]:
    """The storage options of a `hadoopConf`: those of S3A that the table's store has, too.

    Raises:
        ArgumentTypeError: it is not a dict of strings.
    """
    if conf is None:
        return {}
    must_be(conf, Mapping, message="hadoopConf must be a dict of strings.")
    for key, value in conf.items():
        if not isinstance(key, str) or not isinstance(value, str):
            refuse("hadoopConf must be a dict of strings.", key, value)
    return {_S3A[key]: value for key, value in conf.items() if key in _S3A}


_S3A = {
    "fs.s3a.access.key": "aws_access_key_id",
    "fs.s3a.secret.key": "aws_secret_access_key",
    "fs.s3a.session.token": "aws_session_token",
    "fs.s3a.endpoint": "aws_endpoint",
    "fs.s3a.endpoint.region": "aws_region",
}
