"""The rules for commits to a table with Iceberg compatibility.

PROTOCOL.md, "Iceberg Compatibility V1" and "Iceberg Compatibility V2": rules for the protocol, the metadata
and the files that a commit adds. Pure functions; the caller passes what it is about to commit. The file
writer (`data.write_plan`) ensures the rules about the contents of data files (partition columns after the
others, timestamps as 64-bit integers, field ids); for existing files `dml.definition.iceberg_files` does.
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
_MAX_LISTED_FILES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergViolation:
    """One violated rule.

    Attributes:
        feature: `icebergCompatV1` or `icebergCompatV2`.
        what: the violation.
    """

    feature: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedFile:
    """The properties of a data file in the log that the rules need.

    Attributes:
        path: as in the log.
        stats: its statistics as JSON; None where the log has none.
        has_deletion_vector: whether it has a deletion vector.
    """

    path: str
    stats: str | None
    has_deletion_vector: bool


def active_compatibility(protocol: Protocol, metadata: Metadata) -> tuple[str, ...]:
    """The compatibility features that are listed in the protocol and enabled."""
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
    """Refuse a commit with violations from `iceberg_violations`.

    Raises:
        IcebergCompatibilityError: the message has the operation, the features and each violation.
    """
    violations = iceberg_violations(
        protocol, metadata, actions=actions, previous=previous, live=live, defines=defines
    )
    if violations:
        features = ", ".join(sorted({item.feature for item in violations}))
        raise IcebergCompatibilityError(
            f"Cannot {operation}: the table would violate the rules of {features}.",
            cause=f"The violations are: {'; '.join(item.what for item in violations)}.",
            fix="Correct the violations, or set the property that enables the compatibility to false first.",
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
    """Every rule that the table would violate after a commit; empty where no compatibility is active.

    Args:
        protocol: the table's protocol after the commit.
        metadata: the table's metadata after the commit.
        actions: the actions that the commit adds.
        previous: the metadata before; None for a new table.
        live: the existing files that remain, where the commit enables a compatibility.
        defines: whether the commit changes protocol or metadata; otherwise only files are checked.
    """
    active = active_compatibility(protocol, metadata)
    if not active:
        return ()
    of_files = list(islice(_of_files(actions, live), _MAX_LISTED_FILES))
    violations = [IcebergViolation(feature=name, what=what) for name in active for what in of_files]
    if not defines:
        return tuple(violations)
    schema = schema_from_json(metadata.schema_string)
    partitioning = list(_of_partitioning(metadata, previous))
    for name in active:
        rules = [
            *_of_protocol(name, protocol, metadata, active),
            *_of_schema(name, protocol, schema),
            *partitioning,
        ]
        violations.extend(IcebergViolation(feature=name, what=what) for what in rules)
    return tuple(violations)


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
        yield "icebergCompatV1 is also active"


def _of_schema(name: str, protocol: Protocol, schema: StructType) -> Iterator[str]:
    fields = list(_fields(schema))
    for path, field in fields:
        for part in _types(field.data_type):
            if name == "icebergCompatV1" and (isinstance(part, ArrayType | MapType) or part == VOID):
                yield f"the column {path} is of type {part}"
            if name == "icebergCompatV2" and part in (VARIANT, VOID):
                yield f"the column {path} is of type {part}"
    if name == "icebergCompatV2":
        yield from _of_nested_ids(fields)
    if supported_features(protocol) & {"typeWidening", "typeWidening-preview"}:
        for path, field in fields:
            yield from (f"the type of {path} {what}" for what in _of_type_changes(field))


def _of_nested_ids(fields: list[tuple[str, StructField]]) -> Iterator[str]:
    """Array elements, map keys and map values must have unique ids, in the nearest field's metadata."""
    used = Counter(field.metadata[_ID_KEY] for _, field in fields if _ID_KEY in field.metadata)
    for path, field in fields:
        expected = set(_nested_paths(str(field.metadata.get(_PHYSICAL_KEY, field.name)), field.data_type))
        entry = field.metadata.get(NESTED_IDS_KEY, {})
        ids: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
        for key in sorted(expected - set(ids)):
            yield f"the column {path} has no id for {key}"
        for key in sorted(set(ids) - expected):
            yield f"the column {path} has an id for {key}, which does not exist"
        for key in sorted(expected & set(ids)):
            number = ids[key]
            if type(number) is not int or not 0 <= number <= _MAX_ID:
                yield f"the id {number!r} of {key} is not a 32-bit number"
            else:
                used[number] += 1
    yield from (
        f"the id {number} is assigned to more than one field" for number, count in used.items() if count > 1
    )


def _nested_paths(prefix: str, data_type: DataType) -> Iterator[str]:
    # A struct in between stores the ids of its nested types in its own fields.
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
            yield f"was changed from {before} to {after}, which Iceberg does not support"


def _iceberg_reads(before: str, after: str) -> bool:
    """Whether Iceberg V2 supports the promotion: integers, float to double, decimals of the same scale."""
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
    # A renamed partition column keeps its physical name, and a recreated one keeps its logical name.
    if before != after and previous.partition_columns != metadata.partition_columns:
        yield (
            f"a table partitioned by {', '.join(previous.partition_columns)} would be partitioned by "
            f"{', '.join(metadata.partition_columns) or 'nothing'}"
        )


def _physical_partitions(metadata: Metadata) -> tuple[str, ...]:
    schema = schema_from_json(metadata.schema_string)
    fields = ((name, schema.find(name)) for name in metadata.partition_columns)
    return tuple(
        name if field is None else str(field.metadata.get(_PHYSICAL_KEY, field.name))
        for name, field in fields
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
        document = orjson.loads(stats) if stats else None
    except orjson.JSONDecodeError:
        return False
    return isinstance(document, dict) and type(document.get("numRecords")) is int


def _is_true(metadata: Metadata, key: str) -> bool:
    return metadata.configuration.get(key, "false").strip().lower() == "true"


def _fields(schema: StructType, prefix: str = "") -> Iterator[tuple[str, StructField]]:
    """Every field with its path, including fields within arrays and maps."""
    for field in schema.fields:
        path = prefix + field.name
        yield path, field
        for part in _types(field.data_type):
            if isinstance(part, StructType):
                yield from _fields(part, f"{path}.")


def _types(data_type: DataType) -> Iterator[DataType]:
    """A type and the types within arrays and maps; not the fields of a struct."""
    yield data_type
    if isinstance(data_type, ArrayType):
        yield from _types(data_type.element_type)
    elif isinstance(data_type, MapType):
        yield from _types(data_type.key_type)
        yield from _types(data_type.value_type)
