"""What a commit to a table that stays convertible to Iceberg must keep.

PROTOCOL.md, "Iceberg Compatibility V1" and "Iceberg Compatibility V2": rules over the protocol, the metadata
and the files that a commit adds. Pure; the caller asks with what it is about to commit. What only shows
within data files (partition columns after the others, timestamps as 64-bit integers, field ids) is the file
writer's (`data.write_plan`), and `dml.definition.iceberg_files`' where a table has files already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from delta_core.actions import Action, AddFile, Metadata, Protocol
from delta_core.errors import IcebergCompatibilityError, SchemaError
from delta_core.schema.json import schema_from_json, type_from_name
from delta_core.schema.types import (
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_core.table_features.feature import writer_features
from delta_core.table_features.type_widening import CHANGES_KEY
from delta_core.table_features.upgrade import supported_features

NESTED_IDS_KEY = "delta.columnMapping.nested.ids"
_ID_KEY = "delta.columnMapping.id"
_PHYSICAL_KEY = "delta.columnMapping.physicalName"
_MAX_ID = 2**31 - 1
_INTEGERS = (BYTE, SHORT, INTEGER, LONG)
_MOST_FILES_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergViolation:
    """One rule that would be broken.

    Attributes:
        feature: `icebergCompatV1` or `icebergCompatV2`.
        what: the rule, as it is broken here.
    """

    feature: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedFile:
    """What the log says of a data file, as far as the rules ask for it.

    Attributes:
        path: as in the log.
        stats: its statistics as JSON; None where there are none.
        has_deletion_vector: whether it has a deletion vector.
    """

    path: str
    stats: str | None
    has_deletion_vector: bool


def active_compatibility(protocol: Protocol, metadata: Metadata) -> tuple[str, ...]:
    """The compatibility features that are listed and turned on."""
    listed = writer_features(protocol)
    return tuple(
        name
        for name, key in (
            ("icebergCompatV1", "delta.enableIcebergCompatV1"),
            ("icebergCompatV2", "delta.enableIcebergCompatV2"),
        )
        if name in listed and _is_true(metadata, key)
    )


def require_iceberg_compatibility(
    protocol: Protocol,
    metadata: Metadata,
    *,
    actions: Iterable[Action] = (),
    previous: Metadata | None = None,
    live: Iterable[LoggedFile] = (),
    defines: bool = True,
    operation: str = "commit",
) -> None:
    """Refuse what `iceberg_violations` finds.

    Raises:
        IcebergCompatibilityError: names the operation, the feature and each rule.
    """
    found = iceberg_violations(
        protocol, metadata, actions=actions, previous=previous, live=live, defines=defines
    )
    if found:
        features = ", ".join(sorted({item.feature for item in found}))
        raise IcebergCompatibilityError(
            f"Cannot {operation}: the table would no longer be what {features} promises.",
            cause="; ".join(item.what for item in found),
            fix="Change what is named, or set the property that turns the compatibility on to false first.",
        )


def iceberg_violations(
    protocol: Protocol,
    metadata: Metadata,
    *,
    actions: Iterable[Action] = (),
    previous: Metadata | None = None,
    live: Iterable[LoggedFile] = (),
    defines: bool = True,
) -> tuple[IcebergViolation, ...]:
    """Every rule that the table would break after a commit; empty where no compatibility is active.

    Args:
        protocol: the table's after the commit.
        metadata: the table's after the commit.
        actions: what the commit adds.
        previous: the metadata before; None for a new table.
        live: where the commit turns a compatibility on, the files that were in the table and stay.
        defines: whether the commit changes protocol or metadata; else files alone are looked at.
    """
    active = active_compatibility(protocol, metadata)
    if not active:
        return ()
    broken = list(islice(_of_files(actions, live), _MOST_FILES_NAMED))
    found = [IcebergViolation(feature=name, what=what) for name in active for what in broken]
    if not defines:
        return tuple(found)
    schema = schema_from_json(metadata.schema_string)
    partitioning = list(_of_partitioning(metadata, previous))
    for name in active:
        rules = [
            *_of_protocol(name, protocol, metadata, active),
            *_of_schema(name, protocol, schema),
            *partitioning,
        ]
        found.extend(IcebergViolation(feature=name, what=what) for what in rules)
    return tuple(found)


def _of_protocol(name: str, protocol: Protocol, metadata: Metadata, active: tuple[str, ...]) -> Iterator[str]:
    supported = supported_features(protocol)
    mode = metadata.configuration.get("delta.columnMapping.mode", "none").strip().lower()
    if "columnMapping" not in supported:
        yield "the protocol does not list columnMapping"
    if mode not in ("name", "id"):
        yield f"delta.columnMapping.mode is {mode!r}, neither name nor id"
    if name == "icebergCompatV1" and "deletionVectors" in supported:
        yield "the protocol lists deletionVectors"
    if (
        name == "icebergCompatV2"
        and "deletionVectors" in supported
        and _is_true(metadata, "delta.enableDeletionVectors")
    ):
        yield "delta.enableDeletionVectors is true"
    if name == "icebergCompatV2" and "icebergCompatV1" in active:
        yield "icebergCompatV1 is active, too"


def _of_schema(name: str, protocol: Protocol, schema: StructType) -> Iterator[str]:
    fields = list(_fields(schema))
    for path, field in fields:
        for found in _types(field.data_type):
            if name == "icebergCompatV1" and (isinstance(found, ArrayType | MapType) or found == VOID):
                yield f"the column {path} is of the type {found}"
            if name == "icebergCompatV2" and found in (VARIANT, VOID):
                yield f"the column {path} is of the type {found}"
    if name == "icebergCompatV2":
        yield from _of_nested_ids(fields)
    if supported_features(protocol) & {"typeWidening", "typeWidening-preview"}:
        for path, field in fields:
            yield from (f"the type of {path} {what}" for what in _of_type_changes(field))


def _of_nested_ids(fields: list[tuple[str, StructField]]) -> Iterator[str]:
    """Elements of arrays, and keys and values of maps, have ids of their own, kept at the nearest field."""
    used = Counter(field.metadata[_ID_KEY] for _, field in fields if _ID_KEY in field.metadata)
    for path, field in fields:
        expected = set(_nested_paths(str(field.metadata.get(_PHYSICAL_KEY, field.name)), field.data_type))
        given = field.metadata.get(NESTED_IDS_KEY, {})
        ids: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        for key in sorted(expected - set(ids)):
            yield f"the column {path} has no id for {key}"
        for key in sorted(set(ids) - expected):
            yield f"the column {path} has an id for {key}, which it does not have"
        for key in sorted(expected & set(ids)):
            number = ids[key]
            if type(number) is not int or not 0 <= number <= _MAX_ID:
                yield f"the id {number!r} of {key} is no number of 32 bits"
            else:
                used[number] += 1
    yield from (
        f"the id {number} is given to more than one field" for number, count in used.items() if count > 1
    )


def _nested_paths(prefix: str, data_type: DataType) -> Iterator[str]:
    # A struct in between keeps the ids of what lies below it at its own fields.
    if isinstance(data_type, ArrayType):
        yield f"{prefix}.element"
        yield from _nested_paths(f"{prefix}.element", data_type.element_type)
    elif isinstance(data_type, MapType):
        for part, inner in (("key", data_type.key_type), ("value", data_type.value_type)):
            yield f"{prefix}.{part}"
            yield from _nested_paths(f"{prefix}.{part}", inner)


def _of_type_changes(field: StructField) -> Iterator[str]:
    changes = field.metadata.get(CHANGES_KEY) or ()
    for change in changes if isinstance(changes, list | tuple) else (changes,):
        entry = change if isinstance(change, Mapping) else {}
        before, after = str(entry.get("fromType")), str(entry.get("toType"))
        if not _iceberg_reads(before, after):
            yield f"was changed from {before} to {after}, which Iceberg does not read"


def _iceberg_reads(before: str, after: str) -> bool:
    """Whether Iceberg V2 promotes so: integers to longer ones, float to double, decimals of one scale."""
    try:
        first, second = type_from_name(before), type_from_name(after)
    except SchemaError:
        return False
    if first in _INTEGERS and second in _INTEGERS:
        return _INTEGERS.index(first) < _INTEGERS.index(second)
    if isinstance(first, DecimalType) and isinstance(second, DecimalType):
        return first.scale == second.scale and first.precision < second.precision
    return (first, second) == (FLOAT, DOUBLE)


def _of_partitioning(metadata: Metadata, previous: Metadata | None) -> Iterator[str]:
    if previous is None or not previous.partition_columns:
        return
    before, after = _physical_partitions(previous), _physical_partitions(metadata)
    # One that was renamed is the same to its files, and one of the same name the same to users.
    if before != after and previous.partition_columns != metadata.partition_columns:
        yield (
            f"a table partitioned by {', '.join(previous.partition_columns)} would be partitioned by "
            f"{', '.join(metadata.partition_columns) or 'nothing'}"
        )


def _physical_partitions(metadata: Metadata) -> tuple[str, ...]:
    schema = schema_from_json(metadata.schema_string)
    found = ((name, schema.find(name)) for name in metadata.partition_columns)
    return tuple(
        name if field is None else str(field.metadata.get(_PHYSICAL_KEY, field.name)) for name, field in found
    )


def _of_files(actions: Iterable[Action], live: Iterable[LoggedFile]) -> Iterator[str]:
    for action in actions:
        if isinstance(action, AddFile):
            has_deletion_vector = action.deletion_vector is not None
            yield from _of_file(
                LoggedFile(path=action.path, stats=action.stats, has_deletion_vector=has_deletion_vector)
            )
    for file in live:
        yield from _of_file(file)


def _of_file(file: LoggedFile) -> Iterator[str]:
    if not _has_row_count(file.stats):
        yield f"the number of rows of {file.path} is not known (numRecords)"
    if file.has_deletion_vector:
        yield f"{file.path} has a deletion vector"


def _has_row_count(stats: str | None) -> bool:
    try:
        found = orjson.loads(stats) if stats else None
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and type(found.get("numRecords")) is int


def _is_true(metadata: Metadata, key: str) -> bool:
    return metadata.configuration.get(key, "false").strip().lower() == "true"


def _fields(schema: StructType, prefix: str = "") -> Iterator[tuple[str, StructField]]:
    """Every field with its path, those within arrays and maps included."""
    for field in schema.fields:
        path = prefix + field.name
        yield path, field
        for found in _types(field.data_type):
            if isinstance(found, StructType):
                yield from _fields(found, f"{path}.")


def _types(data_type: DataType) -> Iterator[DataType]:
    """A type and what arrays and maps are made of; not the fields of a struct."""
    yield data_type
    if isinstance(data_type, ArrayType):
        yield from _types(data_type.element_type)
    elif isinstance(data_type, MapType):
        yield from _types(data_type.key_type)
        yield from _types(data_type.value_type)
