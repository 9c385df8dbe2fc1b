"""The columns that the expressions of a table refer to: CHECK constraints, invariants, generated columns.

A supported expression is parsed to find its columns. Any other expression, which only another engine can
evaluate, counts as referring to every column whose name occurs in it: refusing a change unnecessarily is
better than leaving an expression that is no longer valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import orjson

from delta_core.errors import ExpressionError
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.stored_expressions import parse_stored
from delta_core.schema.column_paths import Path, display_path, walk_fields
from delta_core.schema.column_uses import ColumnUse, UseKind
from delta_core.schema.field_metadata import GENERATION_KEY, INVARIANTS_KEY
from delta_core.schema.types import DataType, StructField, StructType
from delta_core.table_features.sql_names import words

_CONSTRAINT_PREFIX = "delta.constraints."


def column_uses(
    schema: StructType, configuration: Mapping[str, str], *, clustering_columns: Iterable[Path] = ()
) -> tuple[ColumnUse, ...]:
    """All uses of a table's columns that a change of columns must check.

    Args:
        schema: the table's schema.
        configuration: the table's `metaData.configuration`.
        clustering_columns: by logical names; the domain `delta.clustering` has physical names.
    """
    uses = [
        ColumnUse(kind=UseKind.CHECK, name=key[len(_CONSTRAINT_PREFIX) :], path=path)
        for key, text in sorted(configuration.items())
        if key.lower().startswith(_CONSTRAINT_PREFIX)
        for path in named_columns(text, schema)
    ]
    for owner, field in walk_fields(schema):
        for kind, text in _expressions(field):
            paths = named_columns(text, schema)
            uses += [ColumnUse(kind=kind, name=display_path(owner), path=path, owner=owner) for path in paths]
    uses += [ColumnUse(kind=UseKind.CLUSTERING, name=display_path(p), path=p) for p in clustering_columns]
    return tuple(uses)


def named_columns(text: str, schema: StructType) -> frozenset[Path]:
    """The columns that SQL text refers to, as it spells them; a superset where the SQL is not supported.

    A reference into an array or map counts for the array or map: `items.price` reads all of `items`.
    """
    try:
        paths = referenced_columns(parse_stored(text, schema))
    except ExpressionError:
        paths = frozenset(word.path for word in words(text) if not word.is_called)
    return frozenset(_through_structs(path, schema) for path in paths if schema.find(path[0]) is not None)


def _through_structs(path: Path, schema: StructType) -> Path:
    current: DataType = schema
    for index, part in enumerate(path):
        field = current.find(part) if isinstance(current, StructType) else None
        if field is None:
            return path[:index]
        current = field.data_type
    return path


def _expressions(field: StructField) -> Iterator[tuple[UseKind, str]]:
    generation = field.metadata.get(GENERATION_KEY)
    if isinstance(generation, str):
        yield UseKind.GENERATED, generation
    invariant = field.metadata.get(INVARIANTS_KEY)
    if invariant is not None:
        yield UseKind.INVARIANT, _invariant_string(invariant)


def _invariant_string(raw: object) -> str:
    """The SQL of an invariant; an unreadable invariant is treated as SQL as a whole."""
    try:
        document = orjson.loads(raw) if isinstance(raw, str) else raw
        return str(document["expression"]["expression"])  # type: ignore[index]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return str(raw)
