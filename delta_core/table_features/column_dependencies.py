"""Which columns the expressions of a table name: CHECK constraints, invariants, generated columns.

An expression that is understood here names what its columns are. Any other, which only another engine
evaluates, counts as naming every column whose name stands in it: a change is refused once too often rather
than an expression left behind that no longer holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import orjson

from delta_core.errors import ExpressionError
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.stored_expressions import parse_stored
from delta_core.schema.column_paths import Path, shown, walk_fields
from delta_core.schema.column_uses import ColumnUse, UseKind
from delta_core.schema.field_metadata import GENERATION_KEY, INVARIANTS_KEY
from delta_core.schema.types import DataType, StructField, StructType
from delta_core.table_features.expression_words import words

_CONSTRAINT_PREFIX = "delta.constraints."


def column_uses(
    schema: StructType, configuration: Mapping[str, str], *, clustering_columns: Iterable[Path] = ()
) -> tuple[ColumnUse, ...]:
    """All uses of a table's columns that a change of columns must look at.

    Args:
        schema: the table's schema.
        configuration: the table's `metaData.configuration`.
        clustering_columns: by logical names; the domain `delta.clustering` has physical ones.
    """
    found = [
        ColumnUse(kind=UseKind.CHECK, name=key[len(_CONSTRAINT_PREFIX) :], path=path)
        for key, text in sorted(configuration.items())
        if key.lower().startswith(_CONSTRAINT_PREFIX)
        for path in named_columns(text, schema)
    ]
    for owner, field in walk_fields(schema):
        for kind, text in _expressions(field):
            paths = named_columns(text, schema)
            found += [ColumnUse(kind=kind, name=shown(owner), path=path, owner=owner) for path in paths]
    found += [ColumnUse(kind=UseKind.CLUSTERING, name=shown(p), path=p) for p in clustering_columns]
    return tuple(found)


def named_columns(text: str, schema: StructType) -> frozenset[Path]:
    """The columns that SQL text names, as it spells them; at least these, where it is not understood.

    Of what is in an array or map, the array or map counts: `items.price` reads all of `items`.
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
    """The SQL of an invariant; what cannot be read is taken as if all of it were SQL."""
    try:
        document = orjson.loads(raw) if isinstance(raw, str) else raw
        return str(document["expression"]["expression"])  # type: ignore[index]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return str(raw)
