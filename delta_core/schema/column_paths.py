"""Paths of columns in structs, arrays and maps (PROTOCOL.md, "Field Path").

A path is a sequence of names. In a struct a part is the name of a field, matched without regard to case. In
an array it is `element`, and in a map `key` or `value`. `("e", "element", "d")` is the field `d` of the
structs in the array `e`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

from delta_core.errors import SchemaEvolutionError
from delta_core.schema.types import ArrayType, DataType, MapType, StructField, StructType

Path = tuple[str, ...]


def display_path(path: Sequence[str]) -> str:
    """The path as a string for messages and operation parameters; parts with a dot or backtick are quoted."""
    return ".".join(f"`{part.replace('`', '``')}`" if set(part) & {".", "`"} else part for part in path)


def is_related(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the paths are equal or one is within the other, without regard to case."""
    return all(a.casefold() == b.casefold() for a, b in zip(one, other, strict=False))


def is_within(path: Sequence[str], ancestor: Sequence[str]) -> bool:
    """Whether a path equals the ancestor or is within it, without regard to case."""
    return len(path) >= len(ancestor) and is_related(path, ancestor)


def find_path(schema: StructType, path: Sequence[str]) -> Path:
    """The path in the schema's spelling.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    if not path:
        _missing(path, "The path is empty.")
    current: DataType = schema
    canonical: list[str] = []
    for part in path:
        name, current = _step(current, part, path, canonical)
        canonical.append(name)
    return tuple(canonical)


def type_at(schema: StructType, path: Sequence[str]) -> DataType:
    """The type of a column, array element, map key or map value; the table's schema for the empty path.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    current: DataType = schema
    canonical: list[str] = []
    for part in path:
        name, current = _step(current, part, path, canonical)
        canonical.append(name)
    return current


def field_at(schema: StructType, path: Sequence[str]) -> StructField | None:
    """The struct field at a path; None for an array's element and a map's key or value.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    canonical = find_path(schema, path)
    parent = type_at(schema, canonical[:-1])
    return parent.find(canonical[-1]) if isinstance(parent, StructType) else None


def struct_at(schema: StructType, path: Sequence[str]) -> StructType:
    """The struct at a path; the table's schema for the empty path.

    Raises:
        SchemaEvolutionError: the column does not exist, or is not a struct.
    """
    data_type = type_at(schema, path)
    if not isinstance(data_type, StructType):
        inside = {ArrayType: "'element'", MapType: "'key' or 'value'"}.get(type(data_type))
        raise SchemaEvolutionError(
            f"Column {display_path(path)} has no fields.",
            cause=f"It has type {data_type}, which is not a struct.",
            fix=f"Continue the path with {inside}." if inside else "Name a struct.",
        )
    return data_type


def update_type(
    schema: StructType, path: Sequence[str], change: Callable[[DataType], DataType]
) -> StructType:
    """The schema with the type at an existing path changed; everything else, including metadata, stays."""
    changed = _updated(schema, find_path(schema, path) if path else (), change)
    assert isinstance(changed, StructType)
    return changed


def update_struct(
    schema: StructType, path: Sequence[str], change: Callable[[StructType], StructType]
) -> StructType:
    """The schema with the struct at an existing path changed; the empty path is the table's schema.

    Raises:
        SchemaEvolutionError: the column does not exist, or is not a struct.
    """
    struct = struct_at(schema, path)
    return update_type(schema, path, lambda _: change(struct))


def update_field(
    schema: StructType, path: Sequence[str], change: Callable[[StructField], StructField]
) -> StructType:
    """The schema with the struct field at an existing path changed.

    Raises:
        SchemaEvolutionError: the column does not exist, or is an array's element or a map's key or value.
    """
    canonical = find_path(schema, path)
    field = field_at(schema, canonical)
    if field is None:
        raise SchemaEvolutionError(
            f"{display_path(canonical)} has neither a name nor properties of its own.",
            cause="It is the element of an array, or the key or value of a map.",
            fix="Change the column that contains it.",
        )
    changed = change(field)
    return update_struct(
        schema,
        canonical[:-1],
        lambda struct: StructType(tuple(changed if one is field else one for one in struct)),
    )


def walk_fields(data_type: DataType, prefix: Path = ()) -> Iterator[tuple[Path, StructField]]:
    """Every struct field with its path, parents first, through arrays and maps."""
    match data_type:
        case StructType():
            for field in data_type:
                path = (*prefix, field.name)
                yield path, field
                yield from walk_fields(field.data_type, path)
        case ArrayType():
            yield from walk_fields(data_type.element_type, (*prefix, "element"))
        case MapType():
            yield from walk_fields(data_type.key_type, (*prefix, "key"))
            yield from walk_fields(data_type.value_type, (*prefix, "value"))


def transform_fields(schema: StructType, change: Callable[[Path, StructField], StructField]) -> StructType:
    """The schema with every struct field changed, parents first.

    The fields within a field are visited after its own change, so `change` should not change types.
    """
    changed = _transformed(schema, (), change)
    assert isinstance(changed, StructType)
    return changed


def _transformed(
    data_type: DataType, prefix: Path, change: Callable[[Path, StructField], StructField]
) -> DataType:
    match data_type:
        case StructType():
            fields = []
            for field in data_type:
                path = (*prefix, field.name)
                changed = change(path, field)
                fields.append(replace(changed, data_type=_transformed(changed.data_type, path, change)))
            return StructType(tuple(fields))
        case ArrayType():
            return replace(
                data_type, element_type=_transformed(data_type.element_type, (*prefix, "element"), change)
            )
        case MapType():
            key = _transformed(data_type.key_type, (*prefix, "key"), change)
            value = _transformed(data_type.value_type, (*prefix, "value"), change)
            return replace(data_type, key_type=key, value_type=value)
        case _:
            return data_type


def _updated(current: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    if not path:
        return change(current)
    first, rest = path[0], path[1:]
    match current:
        case StructType():
            return StructType(
                tuple(
                    replace(field, data_type=_updated(field.data_type, rest, change))
                    if field.name == first
                    else field
                    for field in current
                )
            )
        case ArrayType():
            return replace(current, element_type=_updated(current.element_type, rest, change))
        case MapType() if first == "key":
            return replace(current, key_type=_updated(current.key_type, rest, change))
        case MapType():
            return replace(current, value_type=_updated(current.value_type, rest, change))
    raise AssertionError(f"{path} was not checked against the schema")


def _step(current: DataType, part: str, path: Sequence[str], parents: Sequence[str]) -> tuple[str, DataType]:
    folded = part.casefold()
    match current:
        case StructType():
            field = current.find(part)
            if field is not None:
                return field.name, field.data_type
            where = f"The fields of {display_path(parents)}" if parents else "The columns"
            _missing(path, f"{where} are {', '.join(current.names[:50])}.")
        case ArrayType() if folded == "element":
            return "element", current.element_type
        case MapType() if folded == "key":
            return "key", current.key_type
        case MapType() if folded == "value":
            return "value", current.value_type
        case ArrayType():
            _missing(path, f"{display_path(parents)} is an array; its path continues with element.")
        case MapType():
            _missing(path, f"{display_path(parents)} is a map; its path continues with key or value.")
    _missing(path, f"{display_path(parents)} has type {current}, which is not a struct.")


def _missing(path: Sequence[str], cause: str) -> NoReturn:
    raise SchemaEvolutionError(
        f"Column {display_path(path)} does not exist.", cause=cause, fix="Name an existing column."
    )
