"""The features that a table definition needs, and the lowest protocol that supports them.

PROTOCOL.md, "Table Features", "Active Features". A feature is needed when a schema element or a table
property depends on it. Two kinds of properties request the protocol directly and are not stored in the table:
`delta.feature.<name> = supported` requests a feature, and `delta.minReaderVersion` and
`delta.minWriterVersion` request versions. Low versions keep a table accessible to more clients, so only
requested features are added.

Pure functions, without requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from delta_core.actions import Protocol
from delta_core.errors import InvalidTablePropertyError, UnsupportedTableFeatureError
from delta_core.plain_values import value_string
from delta_core.schema.types import (
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_core.table_features.feature import FEATURES
from delta_core.table_features.support import MAX_READER_VERSION, MAX_WRITER_VERSION
from delta_core.table_features.table_properties import canonical_string
from delta_core.table_features.upgrade import (
    FEATURE_READER_VERSION,
    FEATURE_WRITER_VERSION,
    new_protocol,
    supported_features,
    with_dependencies,
    with_features,
    with_versions,
)

CONSTRAINT_PREFIX = "delta.constraints."
FEATURE_PREFIX = "delta.feature."
MIN_READER_VERSION = "delta.minReaderVersion"
MIN_WRITER_VERSION = "delta.minWriterVersion"

_VERSIONS = {MIN_READER_VERSION.lower(): MAX_READER_VERSION, MIN_WRITER_VERSION.lower(): MAX_WRITER_VERSION}
_FEATURE_VALUES = ("supported", "enabled")
_SPELLINGS = {name.lower(): name for name in FEATURES}

Probe = Callable[[StructType, Mapping[str, str]], bool]


def _flag(key: str) -> Probe:
    return lambda _, configuration: configuration.get(key, "false").strip().lower() == "true"


def _key(prefix: str) -> Probe:
    return lambda _, configuration: any(key.lower().startswith(prefix) for key in configuration)


def _not_default(key: str, default: str) -> Probe:
    return lambda _, configuration: configuration.get(key, default).strip().lower() != default


def _column_metadata(key: str) -> Probe:
    return lambda schema, _: any(key in field.metadata for field in _fields(schema))


def _type(data_type: DataType) -> Probe:
    return lambda schema, _: any(part == data_type for part in types_within(schema))


_NEEDED_BY: tuple[tuple[str, Probe], ...] = (
    ("appendOnly", _flag("delta.appendOnly")),
    ("invariants", _column_metadata("delta.invariants")),
    ("invariants", lambda schema, _: any(not field.nullable for field in _struct_fields(schema))),
    ("checkConstraints", _key(CONSTRAINT_PREFIX)),
    ("changeDataFeed", _flag("delta.enableChangeDataFeed")),
    ("generatedColumns", _column_metadata("delta.generationExpression")),
    ("columnMapping", _not_default("delta.columnMapping.mode", "none")),
    ("identityColumns", _column_metadata("delta.identity.start")),
    ("timestampNtz", _type(TIMESTAMP_NTZ)),
    ("deletionVectors", _flag("delta.enableDeletionVectors")),
    ("v2Checkpoint", _not_default("delta.checkpointPolicy", "classic")),
    ("rowTracking", _flag("delta.enableRowTracking")),
    ("inCommitTimestamp", _flag("delta.enableInCommitTimestamps")),
    ("inCommitTimestamp-preview", _flag("delta.enableInCommitTimestamps-preview")),
    ("allowColumnDefaults", _column_metadata("CURRENT_DEFAULT")),
    ("icebergCompatV1", _flag("delta.enableIcebergCompatV1")),
    ("icebergCompatV2", _flag("delta.enableIcebergCompatV2")),
    # Not a known feature here, so a request for it is refused with its name.
    ("icebergCompatV3", _flag("delta.enableIcebergCompatV3")),
    ("materializePartitionColumns", _flag("delta.enableMaterializePartitionColumnsFeature")),
    ("typeWidening", _flag("delta.enableTypeWidening")),
    ("typeWidening", _column_metadata("delta.typeChanges")),
    ("variantType", _type(VARIANT)),
    ("variantShredding", _flag("delta.enableVariantShredding")),
)
"""The schema elements and properties that need each feature. Features that are not listed are only added by
name, by the operation that needs them, or as requirements of other features."""

_PREVIEWS = frozenset(name for name in FEATURES if name.endswith("-preview"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolRequest:
    """Explicit requests for the protocol among a user's properties, and the properties to store.

    Attributes:
        features: features from `delta.feature.<name>`, in the protocol's spelling.
        reader_version: `delta.minReaderVersion`; None when it is absent.
        writer_version: `delta.minWriterVersion`; None when it is absent.
        properties: the remaining properties, which are stored with the table.
        clusters: whether the commit sets clustering columns.
    """

    features: frozenset[str] = frozenset()
    reader_version: int | None = None
    writer_version: int | None = None
    properties: Mapping[str, str]
    clusters: bool = False

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ProtocolRequest:
        """Separate requests for the protocol from the other properties that a user sets.

        Raises:
            InvalidTablePropertyError: a name or value that `property_strings` refuses, a version that the
                protocol does not have, incompatible versions, or a feature whose value is not `supported`.
            UnsupportedTableFeatureError: a feature that is not known.
        """
        features: set[str] = set()
        versions: dict[str, int] = {}
        properties: dict[str, str] = {}
        for key, value in property_strings(given).items():
            folded = key.lower()
            if folded.startswith(FEATURE_PREFIX):
                features.add(_named_feature(key, value))
            elif folded in _VERSIONS:
                versions[folded] = _version(key, value, highest=_VERSIONS[folded])
            else:
                properties[key] = canonical_string(key, value)
        reader = versions.get(MIN_READER_VERSION.lower())
        writer = versions.get(MIN_WRITER_VERSION.lower())
        if (reader or 1) >= FEATURE_READER_VERSION and (writer or 1) < FEATURE_WRITER_VERSION:
            raise InvalidTablePropertyError(
                f"{MIN_READER_VERSION} is {reader}, and {MIN_WRITER_VERSION} is below 7.",
                cause="The protocol can list reader features only when it also lists writer features.",
                fix=f"Set {MIN_WRITER_VERSION} to {FEATURE_WRITER_VERSION}, or name the features instead.",
            )
        return cls(
            features=frozenset(features),
            reader_version=reader,
            writer_version=writer,
            properties=properties,
        )

    @property
    def is_empty(self) -> bool:
        """Whether the protocol is not requested explicitly."""
        return not self.features and self.reader_version is None and self.writer_version is None

    def is_satisfied_by(self, protocol: Protocol) -> bool:
        """Whether the protocol already satisfies the requests."""
        return protocol == _requested(protocol, self)


def property_strings(given: Mapping[str, object]) -> dict[str, str]:
    """Table properties as strings, from Python values: str, True and False, numbers, also NumPy's.

    Raises:
        InvalidTablePropertyError: the properties are not a mapping, a name is not a string, or a value has an
            unsupported type or is not valid Unicode.
    """
    if not isinstance(given, Mapping):
        raise InvalidTablePropertyError(
            f"{given!r} is not a mapping of table properties.",
            cause=f"It is of type {type(given).__name__}.",
            fix="Pass names and values, such as {'delta.appendOnly': 'true'}.",
        )
    strings: dict[str, str] = {}
    for key, value in given.items():
        string = value_string(value)
        if not isinstance(key, str) or string is None:
            raise InvalidTablePropertyError(
                f"The table property {key!r} cannot be {value!r}.",
                cause="Names of table properties are strings. Values are strings, numbers, True or False.",
                fix="Pass a string, such as 'true' or '10'.",
            )
        _require_unicode(key, string)
        strings[key] = string
    return strings


def needed_features(schema: StructType, configuration: Mapping[str, str]) -> frozenset[str]:
    """The features that the schema and the stored properties need, and the features that these require."""
    needed = {name for name, probe in _NEEDED_BY if probe(schema, configuration)}
    return with_dependencies(needed)


def protocol_for(
    schema: StructType,
    configuration: Mapping[str, str],
    *,
    current: Protocol | None = None,
    request: ProtocolRequest | None = None,
) -> Protocol:
    """The lowest protocol that the definition needs, never below `current`.

    Args:
        schema: the table's schema.
        configuration: the properties that are stored with the table.
        current: the table's protocol; None for a new table, which starts at versions 1 and 2 unless other
            versions are requested.
        request: explicit requests for the protocol.
    """
    requested = ProtocolRequest(properties={}) if request is None else request
    needed = needed_features(schema, configuration) | requested.features
    if current is None:
        return new_protocol(
            needed, reader_version=requested.reader_version, writer_version=requested.writer_version
        )
    return with_features(_requested(current, requested), _without_early_names(needed, current))


def evolved_protocol(
    current: Protocol, configuration: Mapping[str, str], *, before: StructType, after: StructType
) -> Protocol:
    """The protocol of a table whose schema is changed by a write, never below the current protocol.

    The old definition may need features that the protocol does not list. The protocol requires to ignore
    them, and features that are not supported for writing stay ignored: a write of rows does not enable
    anything that was not requested.

    Raises:
        UnsupportedTableFeatureError: the new schema needs a feature that is not supported for writing.
    """
    needed = needed_features(after, configuration)
    _refuse(needed - needed_features(before, configuration))
    written = frozenset(name for name in needed if _is_written(name))
    return with_features(current, _without_early_names(written, current))


def _without_early_names(needed: frozenset[str], current: Protocol) -> frozenset[str]:
    """The features that the table lacks; a preview name counts as the feature itself."""
    present = supported_features(current)
    return frozenset(
        name for name in needed if f"{name}-preview" not in present or f"{name}-preview" not in _PREVIEWS
    )


def refuse_unsupported_definition(
    schema: StructType, configuration: Mapping[str, str], *, request: ProtocolRequest | None = None
) -> None:
    """Refuse a definition that needs a feature without full support for writing.

    Requested versions are accepted: a legacy version implies features that the table does not use yet.

    Raises:
        UnsupportedTableFeatureError: the message lists each feature.
    """
    needed = needed_features(schema, configuration) | (request.features if request else frozenset())
    _refuse(needed)
    if request is not None and "clustering" in request.features and not request.clusters:
        raise UnsupportedTableFeatureError(
            "The table feature clustering cannot be enabled by its name.",
            cause="A clustered table needs clustering columns.",
            fix="Create the table with cluster_by, or call DeltaTable.alter.cluster_by.",
        )


def _is_written(name: str) -> bool:
    return name in FEATURES and FEATURES[name].may_be_enabled


def _refuse(needed: frozenset[str]) -> None:
    unsupported = sorted(name for name in needed if not _is_written(name))
    if unsupported:
        raise UnsupportedTableFeatureError(
            f"The table definition needs a table feature that is not supported for writing: "
            f"{', '.join(unsupported)}.",
            cause="A table property or a column enables it.",
            fix="Leave it out, or create the table with an engine that supports the feature.",
        )


def _requested(protocol: Protocol, request: ProtocolRequest) -> Protocol:
    raised = with_versions(
        protocol, reader_version=request.reader_version or 1, writer_version=request.writer_version or 1
    )
    return with_features(raised, request.features)


def _require_unicode(key: str, value: str) -> None:
    try:
        (key + value).encode()
    except UnicodeEncodeError as error:
        raise InvalidTablePropertyError(
            f"The table property {key!r} cannot be {value!r}.",
            cause=f"It is not valid Unicode: {error}.",
            fix="Correct the name or the value.",
        ) from error


def _named_feature(key: str, value: str) -> str:
    name = key[len(FEATURE_PREFIX) :]
    if value.strip().lower() not in _FEATURE_VALUES:
        raise InvalidTablePropertyError(
            f"The table property {key} cannot be {value!r}.",
            cause=f"A property that begins with {FEATURE_PREFIX} adds a feature to the protocol.",
            fix="Set it to 'supported'; to remove a feature, drop the feature.",
        )
    if name.lower() not in _SPELLINGS:
        raise UnsupportedTableFeatureError(
            f"The table feature {name} is not supported for writing.",
            cause=f"{key} requests it, and this version of deltaward does not know the feature.",
            fix="Leave the property out, or use an engine that supports the feature.",
        )
    return _SPELLINGS[name.lower()]


def _version(key: str, value: str, *, highest: int) -> int:
    digits = value.strip()
    version = int(digits) if digits.isascii() and digits.isdecimal() else 0
    if not 1 <= version <= highest:
        raise InvalidTablePropertyError(
            f"The table property {key} cannot be {value!r}.",
            cause=f"The supported versions are 1 to {highest}.",
            fix="Leave it out: the lowest version that the table needs is chosen automatically.",
        )
    return version


def _struct_fields(schema: StructType) -> Iterator[StructField]:
    """The fields of a struct and of structs within it, except those within arrays and maps."""
    for field in schema.fields:
        yield field
        if isinstance(field.data_type, StructType):
            yield from _struct_fields(field.data_type)


def _fields(data_type: Any) -> Iterator[StructField]:
    """Every field of a type, including nested fields."""
    for part in types_within(data_type):
        if isinstance(part, StructType):
            yield from part.fields


def types_within(data_type: DataType) -> Iterator[DataType]:
    """A type and every type within it."""
    pending = [data_type]
    while pending:
        part = pending.pop()
        yield part
        match part:
            case StructType():
                pending.extend(field.data_type for field in part.fields)
            case ArrayType():
                pending.append(part.element_type)
            case MapType():
                pending.extend((part.key_type, part.value_type))
            case _:
                pass
