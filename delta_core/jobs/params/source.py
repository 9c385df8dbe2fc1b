"""The `source` of a job's parameters: files, or the rows of another table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from delta_core.errors import InvalidJobSpecError, SchemaError
from delta_core.jobs.params.contract import COLUMNS_SCHEMA
from delta_core.jobs.params.row_expressions import require_row_expression
from delta_core.policies.contract import schema_of_columns
from delta_core.schema.types import StructType
from delta_core.storage.uri import local_path_of_uri, uri_scheme, with_home

FORMATS: Final = ("parquet", "csv", "json", "delta")
RECORDED: Final = "recorded"
"""A value of `changes_since`: the version in the target table's `txn` action of this job's key."""

_ONLY_FOR = {
    "options": ("parquet", "csv", "json"),
    "schema": ("csv", "json"),
    "corrupt_column": ("json",),
    "version": ("delta",),
    "changes_since": ("delta",),
}

SOURCE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["format", "uris"],
    "additionalProperties": False,
    "properties": {
        "format": {"enum": list(FORMATS)},
        "uris": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "description": "files or directories; for delta exactly one table",
        },
        "options": {"type": "object", "description": "options of Spark's reader; the values are strings"},
        "schema": {
            **COLUMNS_SCHEMA,
            "description": "the columns of CSV or JSON files; their strings are cast to these types",
        },
        "corrupt_column": {
            "type": ["string", "null"],
            "minLength": 1,
            "description": "json: the column to keep invalid lines in; without it an invalid line is an "
            "error",
        },
        "version": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "delta: the table's version; by default the newest",
        },
        "changes_since": {
            "type": ["integer", "string", "null"],
            "description": "delta: only rows appended after this version. "
            f"{RECORDED!r}: after the version that the target has recorded for this job's key, or the whole "
            "table when it has recorded none",
        },
        "where": {
            "type": ["string", "null"],
            "description": "Spark SQL condition over the source's columns, without subqueries; only rows for "
            "which it is true are read",
        },
        "select": {
            "type": "object",
            "description": "output column: Spark SQL expression over the source's columns",
        },
        "group_by": {
            "type": "object",
            "description": "output column: expression to group by; the expressions of select are then "
            "aggregates",
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of the rows.

    Attributes:
        schema: the columns of CSV or JSON files.
        corrupt_column: JSON: the column for invalid lines.
        version: Delta: the version; None for the newest.
        changes_since: Delta: only rows appended after this version; `recorded` is the version that the target
            has recorded for the job's key.
        where: a condition on the source's columns.
        select: output columns; empty for all columns of the source.
        group_by: output columns to group by.
    """

    format: str
    uris: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    schema: StructType | None = None
    corrupt_column: str | None = None
    version: int | None = None
    changes_since: int | Literal["recorded"] | None = None
    where: str | None = None
    select: Mapping[str, str] = field(default_factory=dict, hash=False)
    group_by: Mapping[str, str] = field(default_factory=dict, hash=False)


def parse_source(source: Mapping[str, Any]) -> Source:
    """Parse a source that conforms to `SOURCE_SCHEMA`.

    Raises:
        InvalidJobSpecError: no file is given, a type does not exist, a setting does not apply to the
            format, or an expression has a subquery.
    """
    chosen = source["format"]
    if not source["uris"]:
        raise InvalidJobSpecError("The load has no source.", fix="Name at least one file in source.uris.")
    for name, formats in _ONLY_FOR.items():
        if source.get(name) not in (None, {}, []) and chosen not in formats:
            raise InvalidJobSpecError(
                f"The setting source.{name} does not apply to the format {chosen!r}.",
                fix=f"Leave out the setting, or use the format {' or '.join(formats)}.",
            )
    if chosen == "delta" and len(source["uris"]) != 1:
        raise InvalidJobSpecError(
            "A source of the format delta must be one table.", fix="Name one table in source.uris."
        )
    since = source.get("changes_since")
    if isinstance(since, str) and since != RECORDED:
        raise InvalidJobSpecError(
            f"The setting source.changes_since cannot be {since!r}.",
            fix=f"Set it to a version or to {RECORDED!r}.",
        )
    if source.get("group_by") and not source.get("select"):
        raise InvalidJobSpecError(
            "The setting source.group_by needs aggregates.",
            fix="Add them to source.select, such as {n: count(*)}.",
        )
    where = source.get("where")
    return Source(
        format=chosen,
        uris=tuple(uri if chosen == "delta" else _file_uri(uri) for uri in map(with_home, source["uris"])),
        options={key: as_option(value) for key, value in (source.get("options") or {}).items()},
        schema=_columns(source.get("schema")),
        corrupt_column=source.get("corrupt_column"),
        version=source.get("version"),
        changes_since=since,
        where=None if where is None else require_row_expression(where, what="setting source.where"),
        select=_expressions(source, "select"),
        group_by=_expressions(source, "group_by"),
    )


def _file_uri(uri: str) -> str:
    """The path of a file or directory as Spark opens it.

    Spark does not decode percent-escapes, and removes `x/..` before it follows the link `x`. Then it would
    open another file than the system, and than the file that `allowed_roots` were compared with.
    """
    scheme = uri_scheme(uri)
    if scheme not in (None, "file"):
        return uri
    path = uri if scheme is None else str(local_path_of_uri(uri))
    if ".." in path.split("/"):
        directory, name = os.path.split(path)
        is_name = name not in ("", ".", "..")
        # The name of a link to a file is kept: its extension can define a compression.
        path = os.path.join(os.path.realpath(directory), name) if is_name else os.path.realpath(path)
    return path if scheme is None else f"file://{path}"


def _expressions(source: Mapping[str, Any], name: str) -> dict[str, str]:
    expressions = {key: str(value) for key, value in (source.get(name) or {}).items()}
    for key, sql in expressions.items():
        require_row_expression(sql, what=f"expression of source.{name}.{key}")
    return expressions


def as_option(value: object) -> str:
    """An option's value as a string in Spark's and Delta's form: booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _columns(columns: list[Mapping[str, Any]] | None) -> StructType | None:
    if not columns:
        return None
    try:
        return schema_of_columns(columns)
    except SchemaError as error:
        raise InvalidJobSpecError(
            "The setting source.schema is not a valid schema.", cause=str(error), fix=error.fix
        ) from error
