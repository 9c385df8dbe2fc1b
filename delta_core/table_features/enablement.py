"""From a table's definition to the features that it needs, and to the lowest protocol that has them.

PROTOCOL.md, "Table Features", "Active Features". A schema or a property that only some writers respect asks
for a feature; two families of property ask for the protocol itself and are no part of the table:
`delta.feature.<name> = supported` names a feature, `delta.minReaderVersion` and `delta.minWriterVersion` name
versions. Low versions keep a table open to more clients, so nothing is added that is not asked for.

Pure, and without requests.
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


def _type(wanted: DataType) -> Probe:
    return lambda schema, _: any(found == wanted for found in types_within(schema))


_ASKED_FOR_BY: tuple[tuple[str, Probe], ...] = (
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
    # Not known as a feature here, so it is refused by its name.
    ("icebergCompatV3", _flag("delta.enableIcebergCompatV3")),
    ("materializePartitionColumns", _flag("delta.enableMaterializePartitionColumnsFeature")),
    ("typeWidening", _flag("delta.enableTypeWidening")),
    ("typeWidening", _column_metadata("delta.typeChanges")),
    ("variantType", _type(VARIANT)),
    ("variantShredding", _flag("delta.enableVariantShredding")),
)
"""What asks for each feature. Those that nothing here asks for are asked for by name alone, by the operation
that needs them, or by a feature that requires them."""

_PREVIEWS = frozenset(name for name in FEATURES if name.endswith("-preview"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolRequest:
    """What the given properties ask of the protocol by name, apart from those that the table keeps.

    Attributes:
        features: named with `delta.feature.<name>`, in the protocol's spelling.
        reader_version: `delta.minReaderVersion`; None when it is not given.
        writer_version: `delta.minWriterVersion`; None when it is not given.
        properties: the other ones, which are stored with the table.
        clusters: whether the commit says by which columns the table is clustered.
    """

    features: frozenset[str] = frozenset()
    reader_version: int | None = None
    writer_version: int | None = None
    properties: Mapping[str, str]
    clusters: bool = False

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ProtocolRequest:
        """Sort the properties that a user gives.

        Raises:
            InvalidTablePropertyError: a name or value that `property_strings` refuses, a version that the
                protocol does not have, versions that do not go together, or a feature with another value than `supported`.
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
                cause="Features are listed for readers only where they are listed for writers.",
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
        """Whether nothing is asked of the protocol."""
        return not self.features and self.reader_version is None and self.writer_version is None

    def is_met_by(self, protocol: Protocol) -> bool:
        """Whether the protocol has all of it already."""
        return protocol == _requested(protocol, self)


def property_strings(given: Mapping[str, object]) -> dict[str, str]:
    """Table properties as texts, from what a Python program writes: True and False, numbers, NumPy's too.

    Raises:
        InvalidTablePropertyError: they are no mapping, a name is no text, or a value is nothing of these, or
            no text of Unicode.
    """
    if not isinstance(given, Mapping):
        raise InvalidTablePropertyError(
            f"{given!r} are no table properties.",
            cause=f"It is of type {type(given).__name__}.",
            fix="Pass names and values, such as {'delta.appendOnly': 'true'}.",
        )
    found: dict[str, str] = {}
    for key, value in given.items():
        text = value_string(value)
        if not isinstance(key, str) or text is None:
            raise InvalidTablePropertyError(
                f"The table property {key!r} cannot be {value!r}.",
                cause="Names of table properties are texts, their values texts, numbers, True or False.",
                fix="Pass a text, such as 'true' or '10'.",
            )
        _require_unicode(key, text)
        found[key] = text
    return found


def needed_features(schema: StructType, configuration: Mapping[str, str]) -> frozenset[str]:
    """The features that the schema and the stored properties ask for, and those that they require."""
    asked = {name for name, probe in _ASKED_FOR_BY if probe(schema, configuration)}
    return with_dependencies(asked)


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
        current: the table's protocol; None for a new table, which starts at versions 1 and 2 unless others
            are asked for.
        request: what else was asked of the protocol, by name.
    """
    asked = ProtocolRequest(properties={}) if request is None else request
    needed = needed_features(schema, configuration) | asked.features
    if current is None:
        return new_protocol(needed, reader_version=asked.reader_version, writer_version=asked.writer_version)
    return with_features(_requested(current, asked), _without_early_names(needed, current))


def evolved_protocol(
    current: Protocol, configuration: Mapping[str, str], *, before: StructType, after: StructType
) -> Protocol:
    """The protocol of a table whose schema a write changes, never below the current one.

    What the table asked for before without listing it has been ignored so far, as the protocol wants, and
    goes on being ignored where it is not written: a write of rows turns nothing on that nobody asked for.

    Raises:
        UnsupportedTableFeatureError: the new schema asks for a feature that is not written.
    """
    needed = needed_features(after, configuration)
    _refuse(needed - needed_features(before, configuration))
    written = frozenset(name for name in needed if _is_written(name))
    return with_features(current, _without_early_names(written, current))


def _without_early_names(needed: frozenset[str], current: Protocol) -> frozenset[str]:
    """Those that the table has not, not even by an early name, which is as good as the later one."""
    present = supported_features(current)
    return frozenset(
        name for name in needed if f"{name}-preview" not in present or f"{name}-preview" not in _PREVIEWS
    )


def refuse_unsupported_definition(
    schema: StructType, configuration: Mapping[str, str], *, request: ProtocolRequest | None = None
) -> None:
    """Refuse a definition that asks for a feature which is not written correctly.

    What is asked for by version is let through: a legacy version lists features that nothing uses yet.

    Raises:
        UnsupportedTableFeatureError: names each feature.
    """
    asked = needed_features(schema, configuration) | (request.features if request else frozenset())
    _refuse(asked)
    if request is not None and "clustering" in request.features and not request.clusters:
        raise UnsupportedTableFeatureError(
            "The table feature clustering is not turned on by its name.",
            cause="A clustered table says by which columns it is clustered.",
            fix="Create the table with cluster_by, or call DeltaTable.alter.cluster_by.",
        )


def _is_written(name: str) -> bool:
    return name in FEATURES and FEATURES[name].may_be_enabled


def _refuse(asked: frozenset[str]) -> None:
    wanted = sorted(name for name in asked if not _is_written(name))
    if wanted:
        raise UnsupportedTableFeatureError(
            f"The table definition asks for a table feature that is not supported for writing: "
            f"{', '.join(wanted)}.",
            cause="A table property or a column turns it on.",
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
            cause=f"There is no such text in Unicode: {error}.",
            fix="Correct it.",
        ) from error


def _named_feature(key: str, value: str) -> str:
    name = key[len(FEATURE_PREFIX) :]
    if value.strip().lower() not in _FEATURE_VALUES:
        raise InvalidTablePropertyError(
            f"The table property {key} cannot be {value!r}.",
            cause="A property of that beginning adds a feature to the protocol.",
            fix="Its one value is 'supported'; to take a feature away it is dropped.",
        )
    if name.lower() not in _SPELLINGS:
        raise UnsupportedTableFeatureError(
            f"There is no table feature {name} that is supported for writing.",
            cause=f"{key} asks for it, and this version of deltaward does not know it.",
            fix="Leave it out, or use an engine that knows the feature.",
        )
    return _SPELLINGS[name.lower()]


def _version(key: str, value: str, *, highest: int) -> int:
    text = value.strip()
    version = int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= version <= highest:
        raise InvalidTablePropertyError(
            f"The table property {key} cannot be {value!r}.",
            cause=f"Supported are the versions 1 to {highest}.",
            fix="Leave it out: the lowest version that the table needs is found without it.",
        )
    return version


def _struct_fields(schema: StructType) -> Iterator[StructField]:
    """The fields of a struct and of the structs within it, without those of elements of arrays and maps."""
    for field in schema.fields:
        yield field
        if isinstance(field.data_type, StructType):
            yield from _struct_fields(field.data_type)


def _fields(data_type: Any) -> Iterator[StructField]:
    """Every field of a type, nested ones included."""
    for found in types_within(data_type):
        if isinstance(found, StructType):
            yield from found.fields


def types_within(data_type: DataType) -> Iterator[DataType]:
    """A type and every type within it."""
    pending = [data_type]
    while pending:
        found = pending.pop()
        yield found
        match found:
            case StructType():
                pending.extend(field.data_type for field in found.fields)
            case ArrayType():
                pending.append(found.element_type)
            case MapType():
                pending.extend((found.key_type, found.value_type))
            case _:
                pass
