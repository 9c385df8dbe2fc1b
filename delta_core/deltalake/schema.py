"""The schemas of the `deltalake` package: `Schema`, `Field` and the types, with their conversions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias, cast

import orjson
import pyarrow as pa

from delta_core.arguments import require_string
from delta_core.deltalake._arrow import exported, imported_field, imported_schema, imported_type
from delta_core.deltalake.exceptions import ArgumentTypeError, compatible_class
from delta_core.errors import ConfigurationError, SchemaError
from delta_core.schema import types as core
from delta_core.schema.arrow import field_to_arrow, from_arrow, to_arrow, type_from_arrow, type_to_arrow
from delta_core.schema.json import (
    schema_from_json,
    schema_to_json,
    type_from_json,
    type_from_name,
    type_to_json,
)

_NOT_PRIMITIVE = ("variant", "void")


class _Type:
    """A type of Delta. Equal to the same type; immutable."""

    __slots__ = ("_core",)

    _core: core.DataType
    _kind = ""

    @property
    def type(self) -> str:
        """The name of the kind of type."""
        return self._kind

    def to_json(self) -> str:
        """The type as JSON."""
        return type_to_json(self._core)

    def to_arrow(self) -> Any:
        """The type as a type of Arrow."""
        return exported(type_to_arrow(self._core))

    def __arrow_c_schema__(self) -> object:
        return type_to_arrow(self._core).__arrow_c_schema__()

    @classmethod
    def _of(cls, data_type: core.DataType) -> Self:
        made = wrapped(data_type)
        if not isinstance(made, cls):
            raise ArgumentTypeError(
                f"The type {data_type} is not {_ARTICLES[cls._kind]}.", fix="Call `from_arrow` of its class."
            )
        return made

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._core == self._core

    def __hash__(self) -> int:
        return hash(self._core)

    def __reduce__(self) -> tuple[Any, ...]:
        return wrapped, (self._core,)


_ARTICLES = {
    "": "primitive",
    "array": "an array",
    "map": "a map",
    "struct": "a struct",
    "variant": "a variant",
}


def _parsed(text: str) -> core.DataType:
    try:
        return type_from_json(require_string(text, what="JSON of a type"))
    except SchemaError as error:
        raise ConfigurationError(error.problem, cause=error.cause, fix=error.fix) from error


@compatible_class
class PrimitiveType(_Type):
    """A primitive type, such as `PrimitiveType("long")` or `PrimitiveType("decimal(10,2)")`."""

    __slots__ = ()

    def __init__(self, data_type: str) -> None:
        """Take the name of the type. Raises ConfigurationError, a ValueError, for an unknown name."""
        try:
            if data_type in _NOT_PRIMITIVE or data_type == "decimal":
                raise SchemaError("")
            self._core = type_from_name(data_type)
        except (SchemaError, TypeError):
            raise ConfigurationError(
                f"invalid type string: {data_type}",
                cause="It is not the name of a primitive type.",
                fix="Pass a name such as 'long', 'string', 'timestamp' or 'decimal(10,2)'.",
            ) from None

    @property
    def type(self) -> str:
        """The name of the type."""
        return str(self._core)

    @staticmethod
    def from_json(json: str) -> PrimitiveType:
        """The type of a JSON text, such as `'"integer"'`."""
        return PrimitiveType._of(_parsed(json))

    @staticmethod
    def from_arrow(type: object) -> PrimitiveType:
        """The type for a type of Arrow."""
        return PrimitiveType._of(type_from_arrow(imported_type(type)))

    def __repr__(self) -> str:
        return f'PrimitiveType("{self._core}")'


@compatible_class
class VariantType(_Type):
    """The type of variants."""

    __slots__ = ()
    _kind = "variant"

    def __init__(self) -> None:
        """Create the type."""
        self._core = core.VARIANT

    @staticmethod
    def from_json(json: str) -> VariantType:
        """The type of a JSON text."""
        return VariantType._of(_parsed(json))

    @staticmethod
    def from_arrow(type: object) -> VariantType:
        """The type for a type of Arrow."""
        return VariantType._of(from_arrow(pa.schema([imported_field(type)])).fields[0].data_type)

    def __repr__(self) -> str:
        return "VariantType()"


@compatible_class
class ArrayType(_Type):
    """The type of an array."""

    __slots__ = ()
    _kind = "array"

    def __init__(self, element_type: DataType | str, contains_null: bool = True) -> None:
        """Take the type of the elements; a string is the name of a primitive type."""
        self._core = core.ArrayType(element_type=unwrapped(element_type), contains_null=contains_null)

    @property
    def element_type(self) -> DataType:
        """The type of the elements."""
        return wrapped(cast(core.ArrayType, self._core).element_type)

    @property
    def contains_null(self) -> bool:
        """Whether elements may be null."""
        return cast(core.ArrayType, self._core).contains_null

    @staticmethod
    def from_json(json: str) -> ArrayType:
        """The type of a JSON text."""
        return ArrayType._of(_parsed(json))

    @staticmethod
    def from_arrow(type: object) -> ArrayType:
        """The type for a type of Arrow."""
        return ArrayType._of(type_from_arrow(imported_type(type)))

    def __repr__(self) -> str:
        return f"ArrayType({self.element_type!r}, contains_null={self.contains_null})"


@compatible_class
class MapType(_Type):
    """The type of a map."""

    __slots__ = ()
    _kind = "map"

    def __init__(
        self, key_type: DataType | str, value_type: DataType | str, value_contains_null: bool = True
    ) -> None:
        """Take the types of keys and values; a string is the name of a primitive type."""
        self._core = core.MapType(
            key_type=unwrapped(key_type),
            value_type=unwrapped(value_type),
            value_contains_null=value_contains_null,
        )

    @property
    def key_type(self) -> DataType:
        """The type of the keys."""
        return wrapped(cast(core.MapType, self._core).key_type)

    @property
    def value_type(self) -> DataType:
        """The type of the values."""
        return wrapped(cast(core.MapType, self._core).value_type)

    @property
    def value_contains_null(self) -> bool:
        """Whether values may be null."""
        return cast(core.MapType, self._core).value_contains_null

    @staticmethod
    def from_json(json: str) -> MapType:
        """The type of a JSON text."""
        return MapType._of(_parsed(json))

    @staticmethod
    def from_arrow(type: object) -> MapType:
        """The type for a type of Arrow."""
        return MapType._of(type_from_arrow(imported_type(type)))

    def __repr__(self) -> str:
        return (
            f"MapType({self.key_type!r}, {self.value_type!r}, value_contains_null={self.value_contains_null})"
        )


@compatible_class
class StructType(_Type):
    """The type of a struct."""

    __slots__ = ()
    _kind = "struct"

    def __init__(self, fields: Sequence[Field]) -> None:
        """Take the fields in order."""
        self._core = _struct(fields)

    @property
    def fields(self) -> list[Field]:
        """The fields in order."""
        return _fields(self._core)

    @staticmethod
    def from_json(json: str) -> StructType:
        """The type of a JSON text."""
        return StructType._of(_parsed(json))

    @staticmethod
    def from_arrow(type: object) -> StructType:
        """The type for a type of Arrow."""
        return StructType._of(type_from_arrow(imported_type(type)))

    def __repr__(self) -> str:
        return f"StructType({self.fields!r})"


DataType: TypeAlias = PrimitiveType | MapType | StructType | ArrayType | VariantType


@compatible_class
class Field:
    """A column, or a field of a struct."""

    __slots__ = ("_core",)

    def __init__(
        self,
        name: str,
        type: DataType | str,
        nullable: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Take a name and a type; a string is the name of a primitive type.

        Metadata values other than strings and whole numbers are kept as their JSON text.
        """
        self._core = core.StructField(
            name=require_string(name, what="name of a field"),
            data_type=unwrapped(type),
            nullable=nullable,
            metadata=_metadata(metadata or {}),
        )

    @property
    def name(self) -> str:
        """The name."""
        return self._core.name

    @property
    def type(self) -> DataType:
        """The type."""
        return wrapped(self._core.data_type)

    @property
    def nullable(self) -> bool:
        """Whether the values may be null."""
        return self._core.nullable

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata."""
        return dict(self._core.metadata)

    def to_json(self) -> str:
        """The field as JSON."""
        (field,) = json.loads(schema_to_json(core.StructType((self._core,))))["fields"]
        return orjson.dumps(field).decode()

    @staticmethod
    def from_json(json: str) -> Field:
        """The field of a JSON text."""
        text = require_string(json, what="JSON of a field")
        try:
            parsed = schema_from_json(f'{{"type":"struct","fields":[{text}]}}')
        except SchemaError as error:
            raise ConfigurationError(error.problem, cause=error.cause, fix=error.fix) from error
        return of_field(parsed.fields[0])

    def to_arrow(self) -> Any:
        """The field as a field of Arrow."""
        return exported(_arrow_field(self._core))

    def __arrow_c_schema__(self) -> object:
        return _arrow_field(self._core).__arrow_c_schema__()

    @staticmethod
    def from_arrow(field: object) -> Field:
        """The field for a field of Arrow."""
        return of_field(from_arrow_fields([imported_field(field)]).fields[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and other._core == self._core

    def __hash__(self) -> int:
        return hash(self._core)

    def __reduce__(self) -> tuple[Any, ...]:
        return of_field, (self._core,)

    def __repr__(self) -> str:
        metadata = f", metadata={self.metadata!r}" if self._core.metadata else ""
        return f"Field({self.name}, {self.type!r}, nullable={self.nullable}{metadata})"


@compatible_class
class Schema:
    """The schema of a table."""

    __slots__ = ("_core",)

    def __init__(self, fields: Sequence[Field]) -> None:
        """Take the columns in order."""
        self._core = _struct(fields)

    @property
    def type(self) -> str:
        """The name of the kind of type, `struct`."""
        return "struct"

    @property
    def fields(self) -> list[Field]:
        """The columns in order."""
        return _fields(self._core)

    @property
    def invariants(self) -> list[tuple[str, str]]:
        """The invariants in the metadata of columns: the path of the column, and the condition."""
        return [
            (field.name, json.loads(field.metadata["delta.invariants"])["expression"]["expression"])
            for field in self._core
            if "delta.invariants" in field.metadata
        ]

    def to_json(self) -> str:
        """The schema as JSON."""
        return schema_to_json(self._core)

    @staticmethod
    def from_json(json: str) -> Schema:
        """The schema of a JSON text."""
        try:
            return of_struct(schema_from_json(require_string(json, what="JSON of a schema")))
        except SchemaError as error:
            raise ConfigurationError(error.problem, cause=error.cause, fix=error.fix) from error

    def to_arrow(self, as_large_types: bool = False) -> Any:
        """The schema as a schema of Arrow.

        Args:
            as_large_types: give strings, binary values and lists 64-bit offsets.
        """
        arrow = arrow_schema(self._core)
        if as_large_types:
            arrow = pa.schema([field.with_type(_large(field.type)) for field in arrow])
        return exported(arrow)

    def __arrow_c_schema__(self) -> object:
        return arrow_schema(self._core).__arrow_c_schema__()

    @staticmethod
    def from_arrow(type: object) -> Schema:
        """The schema for a schema of Arrow."""
        return of_struct(from_arrow_fields(imported_schema(type)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and other._core == self._core

    def __hash__(self) -> int:
        return hash(self._core)

    def __reduce__(self) -> tuple[Any, ...]:
        return of_struct, (self._core,)

    def __repr__(self) -> str:
        return f"Schema({self.fields!r})"


def wrapped(data_type: core.DataType) -> DataType:
    """The type of this module for a type of `delta_core`."""
    cls: type[DataType]
    match data_type:
        case core.ArrayType():
            cls = ArrayType
        case core.MapType():
            cls = MapType
        case core.StructType():
            cls = StructType
        case core.VARIANT:
            cls = VariantType
        case _:
            cls = PrimitiveType
    made = cls.__new__(cls)
    made._core = data_type
    return made


def unwrapped(data_type: DataType | str | core.DataType) -> core.DataType:
    """The type of `delta_core` for a caller's type or the name of one."""
    if isinstance(data_type, str):
        return PrimitiveType(data_type)._core
    if isinstance(data_type, _Type):
        return data_type._core
    if isinstance(data_type, core.DataType):
        return data_type
    raise ArgumentTypeError(
        f"A {type(data_type).__name__} is not a type of a column.",
        fix="Pass a name such as 'long', or a type of delta_core.deltalake.schema.",
    )


def of_field(field: core.StructField) -> Field:
    """The field of this module for a field of `delta_core`."""
    made = Field.__new__(Field)
    made._core = field
    return made


def of_struct(struct: core.StructType) -> Schema:
    """The schema of this module for a schema of `delta_core`."""
    made = Schema.__new__(Schema)
    made._core = core.StructType(struct.fields)
    return made


def core_schema(schema: object) -> core.StructType:
    """A caller's schema, of this module or of Arrow, as a schema of `delta_core`."""
    return schema._core if isinstance(schema, Schema) else from_arrow_fields(imported_schema(schema))


def core_field(field: object) -> core.StructField:
    """A caller's field, of this module or of Arrow, as a field of `delta_core`."""
    return field._core if isinstance(field, Field) else from_arrow_fields([imported_field(field)]).fields[0]


def from_arrow_fields(fields: Iterable[pa.Field]) -> core.StructType:
    """The schema for fields of Arrow, with their metadata. Unsigned types become signed ones."""
    signed = [field.with_type(signed_type(field.type)) for field in fields]
    return core.StructType(
        tuple(
            core.StructField(
                name=field.name,
                data_type=field.data_type,
                nullable=field.nullable,
                metadata=_arrow_metadata(item),
            )
            for field, item in zip(from_arrow(pa.schema(signed)), signed, strict=True)
        )
    )


def arrow_schema(schema: core.StructType) -> pa.Schema:
    """The schema of Arrow, with the metadata of columns."""
    return pa.schema([_arrow_field(field) for field in schema]) if schema.fields else to_arrow(schema)


_SIGNED = {pa.uint8(): pa.int8(), pa.uint16(): pa.int16(), pa.uint32(): pa.int32(), pa.uint64(): pa.int64()}


def signed_type(data_type: pa.DataType) -> pa.DataType:
    """The type with signed integers of the same width in place of unsigned ones, as in `deltalake`."""
    return _mapped(data_type, lambda leaf: _SIGNED.get(leaf, leaf))


def _mapped(data_type: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with each type that contains no other replaced. A list has no fixed size then."""
    kinds = pa.types
    if isinstance(data_type, pa.BaseExtensionType):
        return data_type
    if kinds.is_struct(data_type):
        return pa.struct([field.with_type(_mapped(field.type, leaf)) for field in data_type.fields])
    if kinds.is_map(data_type):
        return pa.map_(
            data_type.key_field.with_type(_mapped(data_type.key_type, leaf)),
            data_type.item_field.with_type(_mapped(data_type.item_type, leaf)),
        )
    if kinds.is_fixed_size_list(data_type):
        name = "element" if data_type.value_field.name == "item" else data_type.value_field.name
        item = data_type.value_field.with_name(name)
        return pa.list_(item.with_type(_mapped(data_type.value_type, leaf)))
    for is_kind, make in (
        (kinds.is_list, pa.list_),
        (kinds.is_large_list, pa.large_list),
        (kinds.is_list_view, pa.list_view),
        (kinds.is_large_list_view, pa.large_list_view),
    ):
        if is_kind(data_type):
            return make(data_type.value_field.with_type(_mapped(data_type.value_type, leaf)))
    return leaf(data_type)


def _large(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_string(data_type):
        return pa.large_string()
    if pa.types.is_binary(data_type):
        return pa.large_binary()
    if pa.types.is_list(data_type):
        return pa.large_list(data_type.value_field.with_type(_large(data_type.value_type)))
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_large(field.type)) for field in data_type.fields])
    if pa.types.is_map(data_type):
        return pa.map_(
            data_type.key_field.with_type(_large(data_type.key_type)),
            data_type.item_field.with_type(_large(data_type.item_type)),
        )
    return data_type


def _struct(fields: Sequence[Field]) -> core.StructType:
    if not all(isinstance(field, Field) for field in fields):
        raise ArgumentTypeError("The fields are not a list of Field.", fix="Pass a list of Field objects.")
    return core.StructType(tuple(field._core for field in fields))


def _fields(struct: core.DataType) -> list[Field]:
    return [of_field(field) for field in cast(core.StructType, struct)]


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in metadata.items():
        is_kept = isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
        try:
            kept[require_string(name, what="key of metadata")] = (
                value if is_kept else json.dumps(value, separators=(",", ":"))
            )
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                "The metadata of a field cannot be written as JSON.", cause=str(error), fix="Use JSON values."
            ) from error
    return kept


def _arrow_metadata(field: pa.Field) -> dict[str, Any]:
    return {
        key.decode(): value.decode()
        for key, value in (field.metadata or {}).items()
        if not key.startswith((b"ARROW:", b"PARQUET:"))
    }


def _arrow_field(field: core.StructField) -> pa.Field:
    arrow = field_to_arrow(field)
    own = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in field.metadata.items()
    }
    return arrow.with_metadata({**(arrow.metadata or {}), **own}) if own else arrow
