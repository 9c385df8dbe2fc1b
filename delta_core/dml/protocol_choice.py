"""The lowest protocol that a table definition needs (PROTOCOL.md, "Protocol Evolution", "Table Features").

Low versions keep a table writable by more clients, so a feature is asked for only when the schema or a
property uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from delta_core.actions import Metadata, Protocol
from delta_core.errors import InvalidTablePropertyError, UnsupportedTableFeatureError
from delta_core.schema.types import TIMESTAMP_NTZ, ArrayType, DataType, MapType, StructType
from delta_core.table_features.feature import FEATURES, TableFacts, writer_features

TIMESTAMP_NTZ_FEATURE = "timestampNtz"
CHECK_CONSTRAINTS_FEATURE = "checkConstraints"
CONSTRAINT_PREFIX = "delta.constraints."

_FEATURE_PREFIX = "delta.feature."
_VERSION_PROPERTIES = frozenset({"delta.minreaderversion", "delta.minwriterversion"})
_BY_PROPERTY = {"delta.enableRowTracking": "rowTracking"}
_READER_FEATURES = frozenset({TIMESTAMP_NTZ_FEATURE})


def protocol_for(
    schema: StructType, configuration: Mapping[str, str], *, current: Protocol | None = None
) -> Protocol:
    """The protocol that the schema and properties need, never below `current`.

    Versions 1 and 2 serve a table without features; CHECK constraints alone need writer version 3; a
    feature that only exists by name moves the table to reader 3 and writer 7, naming what its old
    versions implied.
    """
    base = current or Protocol(min_reader_version=1, min_writer_version=2)
    needed = set(_needed_features(schema, configuration))
    missing = needed - writer_features(base)
    if not missing:
        return base
    if missing == {CHECK_CONSTRAINTS_FEATURE} and base.min_writer_version < 3:
        return Protocol(min_reader_version=base.min_reader_version, min_writer_version=3)
    reader = (needed & _READER_FEATURES) | (base.reader_features or frozenset())
    if base.min_reader_version == 2:
        reader |= {"columnMapping"}
    named_reader = bool(reader) or base.min_reader_version >= 3
    return Protocol(
        min_reader_version=3 if named_reader else base.min_reader_version,
        min_writer_version=7,
        reader_features=frozenset(reader) if named_reader else None,
        writer_features=frozenset(writer_features(base) | needed),
    )


def refuse_protocol_properties(keys: Iterable[str]) -> None:
    """Refuse properties that name protocol versions: stored with the table they would do nothing.

    Raises:
        InvalidTablePropertyError: names them.
    """
    found = [key for key in keys if key.lower() in _VERSION_PROPERTIES]
    if found:
        raise InvalidTablePropertyError(
            f"{', '.join(sorted(found))} cannot be set as table properties.",
            cause="The protocol versions follow from the schema and the properties that are in use.",
            fix="Leave them out.",
        )


def refuse_unsupported_definition(metadata: Metadata) -> None:
    """Refuse properties and schemas that ask for a feature which is not written correctly.

    Raises:
        UnsupportedTableFeatureError: names each feature.
    """
    wanted = {
        feature.name
        for feature in FEATURES.values()
        if not feature.may_be_enabled
        and not feature.active(_facts(_NOTHING))
        and feature.active(_facts(metadata))
    }
    wanted -= {"variantType", "variantType-preview"}  # Arrow data has no such type; a column may be named so
    for key, value in metadata.configuration.items():
        if key.lower().startswith(_FEATURE_PREFIX):
            wanted.add(key[len(_FEATURE_PREFIX) :])
        elif key in _BY_PROPERTY and value.strip().lower() == "true":
            wanted.add(_BY_PROPERTY[key])
    if wanted:
        names = ", ".join(sorted(wanted))
        raise UnsupportedTableFeatureError(
            f"The table definition asks for a table feature that is not supported for writing: {names}.",
            cause="A table property or a column turns it on.",
            fix="Leave it out, or create the table with an engine that supports the feature.",
        )


_NOTHING = Metadata(id="", schema_string='{"type":"struct","fields":[]}')


def _facts(metadata: Metadata) -> TableFacts:
    return TableFacts(metadata=metadata, has_deletion_vectors=False, has_v2_checkpoint=False)


def _needed_features(schema: StructType, configuration: Mapping[str, str]) -> Iterator[str]:
    if _uses_timestamp_ntz(schema):
        yield TIMESTAMP_NTZ_FEATURE
    if any(key.startswith(CONSTRAINT_PREFIX) for key in configuration):
        yield CHECK_CONSTRAINTS_FEATURE


def _uses_timestamp_ntz(data_type: DataType) -> bool:
    match data_type:
        case StructType():
            return any(_uses_timestamp_ntz(field.data_type) for field in data_type)
        case ArrayType():
            return _uses_timestamp_ntz(data_type.element_type)
        case MapType():
            return _uses_timestamp_ntz(data_type.key_type) or _uses_timestamp_ntz(data_type.value_type)
        case _:
            return data_type == TIMESTAMP_NTZ
