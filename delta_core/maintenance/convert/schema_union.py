"""The common schema of many Parquet files whose columns may differ.

A column has one type in a table. Either all files have that type; or the types are `byte`, `short` and
`int`, which Parquet stores in the same way; or the table has type widening, and the column gets the widest
type, with a recorded type change for each narrower type (PROTOCOL.md, "Type Widening"). Every column is
nullable, since another file may lack it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from delta_core.errors import SchemaMismatchError
from delta_core.schema.column_paths import Path, field_at, transform_fields
from delta_core.schema.field_metadata import TYPE_CHANGES_KEY, with_metadata
from delta_core.schema.type_changes import may_widen, type_changes
from delta_core.schema.types import (
    BYTE,
    INTEGER,
    SHORT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

# Types with the same physical type in Parquet, from narrowest to widest.
_STORED_ALIKE = (BYTE, SHORT, INTEGER)


@dataclass(slots=True, kw_only=True)
class SchemaUnion:
    """The union of the schemas of the files that were added.

    Attributes:
        widens: whether the table has type widening.
        iceberg: whether types may widen only in the ways that Iceberg supports.
        schema: the union, without recorded type changes; empty before the first file.
    """

    widens: bool = False
    iceberg: bool = False
    schema: StructType = field(default_factory=lambda: StructType(()))
    _seen: set[StructType] = field(default_factory=set)

    def add(self, schema: StructType, path: str) -> None:
        """Add a file's schema. New columns are appended at the end.

        Raises:
            SchemaMismatchError: a column's type, or the case of its name, differs from earlier files. The
                message names the file.
        """
        if schema in self._seen:
            return
        self.schema = self._structs(self.schema, schema, (), path)
        self._seen.add(schema)

    def result(self) -> StructType:
        """The union, with a recorded type change for every narrower type that a file has."""
        if not self.widens:
            return self.schema
        narrower: dict[tuple[Path, Path], set[DataType]] = {}
        for seen in self._seen:
            for change in type_changes(seen, self.schema):
                if not _stored_alike(change.before, change.after):
                    narrower.setdefault((change.path, change.field_path), set()).add(change.before)
        records: dict[Path, list[Mapping[str, str]]] = {}
        for (path, inner), types in sorted(narrower.items()):
            records.setdefault(path, []).extend(self._chain(path, inner, types))

        def recorded(path: Path, column: StructField) -> StructField:
            changes = records.get(path)
            return with_metadata(column, {TYPE_CHANGES_KEY: changes}) if changes else column

        return transform_fields(self.schema, recorded) if records else self.schema

    def _chain(self, path: Path, inner: Path, types: set[DataType]) -> list[Mapping[str, str]]:
        """The type changes from the narrowest type to the widest; each step is a valid widening."""
        column = field_at(self.schema, path)
        assert column is not None
        final = column.data_type
        for part in inner:
            final = _part(final, part)
        steps = sorted(types, key=lambda one: (sum(self._fits(other, one) for other in types), str(one)))
        entries: list[Mapping[str, str]] = []
        for before, after in zip(steps, [*steps[1:], final], strict=True):
            if not self._fits(before, after):
                raise _mismatch(".".join((*path, *inner)), before, after, "another file")
            entry = {"fromType": str(before), "toType": str(after)}
            entries.append({**entry, "fieldPath": ".".join(inner)} if inner else entry)
        return entries

    def _fits(self, before: DataType, after: DataType) -> bool:
        return may_widen(before, after, iceberg=self.iceberg)

    def _structs(self, table: StructType, data: StructType, prefix: Path, path: str) -> StructType:
        _require_distinct(data, prefix, path)
        known = {column.name.casefold(): column for column in table}
        merged = {column.name: column for column in table}
        for column in data:
            same = known.get(column.name.casefold())
            if same is not None and same.name != column.name:
                raise SchemaMismatchError(
                    f"The column {'.'.join((*prefix, column.name))} of the file {path!r} is spelled "
                    f"{same.name} in other files.",
                    cause="Some engines distinguish upper case from lower case, and would read nulls.",
                    fix="Write the file again with that spelling, or move the file away.",
                )
            if same is None:
                known[column.name.casefold()] = column
                data_type = _nullable(column.data_type)
            else:
                data_type = self._merged(same.data_type, column.data_type, (*prefix, column.name), path)
            merged[column.name] = StructField(name=column.name, data_type=data_type)
        return StructType(tuple(merged.values()))

    def _merged(self, table: DataType, data: DataType, column: Path, path: str) -> DataType:
        match table, data:
            case StructType(), StructType():
                return self._structs(table, data, column, path)
            case ArrayType(), ArrayType():
                element = self._merged(table.element_type, data.element_type, (*column, "element"), path)
                return ArrayType(element_type=element)
            case MapType(), MapType():
                return MapType(
                    key_type=self._merged(table.key_type, data.key_type, (*column, "key"), path),
                    value_type=self._merged(table.value_type, data.value_type, (*column, "value"), path),
                )
        if data in (table, VOID):
            return table
        if table == VOID:
            return _nullable(data)
        if _stored_alike(table, data):
            return max(table, data, key=lambda one: _STORED_ALIKE.index(one))
        if self.widens and self._fits(table, data):
            return data
        if self.widens and self._fits(data, table):
            return table
        raise _mismatch(".".join(column), table, data, f"the file {path!r}")


def _require_distinct(data: StructType, prefix: Path, path: str) -> None:
    seen: dict[str, str] = {}
    for column in data:
        key = column.name.casefold()
        if key in seen:
            raise SchemaMismatchError(
                f"The file {path!r} has two columns named {'.'.join((*prefix, column.name))}.",
                cause=f"The names {seen[key]} and {column.name} differ only in case.",
                fix="Write the file again with distinct column names, or move the file away.",
            )
        seen[key] = column.name


def _stored_alike(one: DataType, other: DataType) -> bool:
    return one in _STORED_ALIKE and other in _STORED_ALIKE


def _part(data_type: DataType, name: str) -> DataType:
    match data_type:
        case ArrayType():
            return data_type.element_type
        case MapType():
            return data_type.key_type if name == "key" else data_type.value_type
    return data_type


def _nullable(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            return StructType(
                tuple(StructField(name=f.name, data_type=_nullable(f.data_type)) for f in data_type)
            )
        case ArrayType():
            return ArrayType(element_type=_nullable(data_type.element_type))
        case MapType():
            return MapType(key_type=_nullable(data_type.key_type), value_type=_nullable(data_type.value_type))
    return data_type


def _mismatch(column: str, table: DataType, data: DataType, where: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"The column {column} has the type {table} in some files and {data} in {where}.",
        cause="A column of a table has one type, and a conversion does not rewrite files.",
        fix="Write the files with the differing type again, or move them away. With the table property "
        "delta.enableTypeWidening set to true, types that widen without loss may differ.",
    )
