"""The protocol versions that `deltalake` chooses.

`deltalake` raises a table to the lowest version that implies a feature, and lists only the features that a
table needs. `delta_core` does so when a caller requests the versions; these functions request them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from delta_core.actions import Protocol
from delta_core.schema.column_mapping import MODE_KEY
from delta_core.schema.column_names import STATS_COLUMNS_KEY, parse_names, render_names
from delta_core.schema.evolution import ILLEGAL_CHARACTERS
from delta_core.schema.types import DataType, StructType
from delta_core.table_features.enablement import (
    FEATURE_PREFIX,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    needed_features,
    types_within,
)
from delta_core.table_features.feature import FEATURES
from delta_core.table_features.upgrade import (
    DEFAULT_WRITER_VERSION,
    FEATURE_READER_VERSION,
    FEATURE_WRITER_VERSION,
)


def with_versions_of_new_table(
    configuration: dict[str, str] | None, schema: StructType
) -> dict[str, str] | None:
    """The properties of a new table, with the versions that its features need.

    Names such as `sold items` need a column mapping: delta-spark cannot write such a table without one.
    """
    given: Any = {} if configuration is None else configuration
    if not isinstance(given, Mapping):
        return configuration
    added: dict[str, str] = {}
    if MODE_KEY not in given and any(ILLEGAL_CHARACTERS & set(name) for name in _names(schema)):
        added[MODE_KEY] = "name"
    needed = _needed({**given, **added}, schema)
    if needed and not _requests_protocol(given):
        added |= _legacy_versions(needed) or _listing_versions(needed)
    return {**given, **added} if added else configuration


def without_partition_columns(
    configuration: dict[str, str] | None, columns: Sequence[str]
) -> dict[str, str] | None:
    """The properties without partition columns in the list of columns with statistics."""
    listed = configuration.get(STATS_COLUMNS_KEY) if isinstance(configuration, dict) else None
    paths = parse_names(listed) if isinstance(listed, str) else None
    if configuration is None or not paths:
        return configuration
    partitions = {name.casefold() for name in columns}
    kept = [path for path in paths if len(path) > 1 or path[0].casefold() not in partitions]
    if len(kept) == len(paths):
        return configuration
    return {**configuration, STATS_COLUMNS_KEY: render_names(kept)}


def with_legacy_versions(
    properties: Mapping[str, str], schema: StructType, protocol: Protocol
) -> Mapping[str, str]:
    """The properties to set, with the version that implies their features, where the table lists none."""
    if not isinstance(properties, Mapping) or protocol.min_writer_version >= FEATURE_WRITER_VERSION:
        return properties
    needed = _needed(properties, StructType(()))
    legacy = _legacy_versions(needed) if needed and not _requests_protocol(properties) else None
    return properties if legacy is None else {**properties, **legacy}


def _names(data_type: DataType) -> Iterator[str]:
    """The names of all columns and fields."""
    for part in types_within(data_type):
        if isinstance(part, StructType):
            yield from part.names


def _needed(properties: Mapping[str, Any], schema: StructType) -> frozenset[str]:
    strings = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in properties.items()
        if isinstance(name, str)
    }
    return needed_features(schema, strings)


def _requests_protocol(properties: Mapping[str, Any]) -> bool:
    versions = (MIN_READER_VERSION.lower(), MIN_WRITER_VERSION.lower())
    return any(
        isinstance(name, str) and (name.lower() in versions or name.lower().startswith(FEATURE_PREFIX))
        for name in properties
    )


def _listing_versions(needed: frozenset[str]) -> dict[str, str]:
    """The versions that list features, and so need no others."""
    versions = {MIN_WRITER_VERSION: str(FEATURE_WRITER_VERSION)}
    if any(name in FEATURES and FEATURES[name].in_reader for name in needed):
        versions[MIN_READER_VERSION] = str(FEATURE_READER_VERSION)
    return versions


def _legacy_versions(needed: frozenset[str]) -> dict[str, str] | None:
    """The versions that imply all of the features; None where a feature must be listed."""
    reader, writer = 1, DEFAULT_WRITER_VERSION
    for name in needed:
        feature = FEATURES.get(name)
        if feature is None or feature.legacy_writer_version is None:
            return None
        writer = max(writer, feature.legacy_writer_version)
        reader = max(reader, feature.legacy_reader_version or 1)
    versions = {MIN_WRITER_VERSION: str(writer)}
    return versions if reader == 1 else {**versions, MIN_READER_VERSION: str(reader)}
