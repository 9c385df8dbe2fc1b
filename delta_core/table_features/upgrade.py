"""Protocols as sets of features: the versions that express a set, and upgrades of protocols.

PROTOCOL.md, "Protocol Evolution", "Table Features", "Writer Version Requirements", "Reader Version
Requirements". A version below reader 3 and writer 7 implies a fixed set of features; higher versions list the
features. A table that changes from implied to listed features lists every feature that its old versions
implied, since each of them may be in use. The functions here never remove a feature from a protocol;
`removal` does.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.actions import Protocol
from delta_core.table_features.feature import FEATURES

DEFAULT_READER_VERSION = 1
DEFAULT_WRITER_VERSION = 2
"""The versions of a new table without requirements."""

FEATURE_READER_VERSION = 3
FEATURE_WRITER_VERSION = 7

_LEGACY_VERSIONS = ((1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 6))


def with_dependencies(features: Iterable[str]) -> frozenset[str]:
    """The features and all features that they require."""
    result: set[str] = set()
    pending = list(features)
    while pending:
        name = pending.pop()
        if name in result:
            continue
        result.add(name)
        if name in FEATURES:
            pending.extend(FEATURES[name].requires)
    return frozenset(result)


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Every feature that a table supports, for writers and for readers.

    A legacy version implies column mapping only where both versions do: a table that readers of version 1 may
    read has no column mapping.
    """
    if protocol.min_writer_version < FEATURE_WRITER_VERSION:
        return implied_features(protocol.min_reader_version, protocol.min_writer_version)
    return (protocol.writer_features or frozenset()) | (protocol.reader_features or frozenset())


def implied_features(reader_version: int, writer_version: int) -> frozenset[str]:
    """The features that a pair of versions implies; empty where features are listed."""
    if writer_version >= FEATURE_WRITER_VERSION:
        return frozenset()
    return frozenset(
        feature.name
        for feature in FEATURES.values()
        if feature.legacy_writer_version is not None
        and feature.legacy_writer_version <= writer_version
        and (feature.legacy_reader_version or 1) <= reader_version
    )


def lowest_protocol(features: Iterable[str]) -> Protocol:
    """The lowest versions that express exactly these features.

    Low versions keep a table accessible to more clients, so a set that a legacy version implies becomes that
    version. If column mapping is the only reader feature, the reader version stays 2, and it is listed for
    writers only.
    """
    target = frozenset(features)
    for reader, writer in _LEGACY_VERSIONS:
        if implied_features(reader, writer) == target:
            return Protocol(min_reader_version=reader, min_writer_version=writer)
    readers = _for_readers(target)
    native = any(FEATURES[name].legacy_reader_version is None for name in readers)
    reader = FEATURE_READER_VERSION if native else 2 if readers else 1
    return Protocol(
        min_reader_version=reader,
        min_writer_version=FEATURE_WRITER_VERSION,
        reader_features=readers if native else None,
        writer_features=target,
    )


def new_protocol(
    features: Iterable[str], *, reader_version: int | None = None, writer_version: int | None = None
) -> Protocol:
    """The lowest protocol of a new table.

    Args:
        features: the features that the table must support; their dependencies are added.
        reader_version, writer_version: explicitly requested versions: the table also supports the features
            that they imply. Versions 3 and 7 imply no features, so with them the table supports only
            `features`.
    """
    implied = implied_features(
        DEFAULT_READER_VERSION if reader_version is None else reader_version,
        DEFAULT_WRITER_VERSION if writer_version is None else writer_version,
    )
    return lowest_protocol(implied | with_dependencies(features))


def with_features(protocol: Protocol, features: Iterable[str]) -> Protocol:
    """A protocol that also supports these features and their dependencies; unchanged if it already does.

    Versions are never lowered, and features never removed. A protocol that lists features keeps listing them.
    """
    present = supported_features(protocol)
    target = present | with_dependencies(features)
    if target == present:
        return protocol
    if protocol.min_writer_version < FEATURE_WRITER_VERSION:
        lowest = lowest_protocol(target)
        if lowest.min_writer_version < FEATURE_WRITER_VERSION:
            return Protocol(
                min_reader_version=max(protocol.min_reader_version, lowest.min_reader_version),
                min_writer_version=max(protocol.min_writer_version, lowest.min_writer_version),
            )
    listed = (protocol.reader_features or frozenset()) | _for_readers(target)
    native = any(name not in FEATURES or FEATURES[name].legacy_reader_version is None for name in listed)
    reader = max(protocol.min_reader_version, FEATURE_READER_VERSION if native else 2 if listed else 1)
    return Protocol(
        min_reader_version=reader,
        min_writer_version=max(protocol.min_writer_version, FEATURE_WRITER_VERSION),
        reader_features=listed if reader >= FEATURE_READER_VERSION else None,
        writer_features=target,
    )


def with_versions(protocol: Protocol, *, reader_version: int, writer_version: int) -> Protocol:
    """A protocol that also supports the features that these versions imply; lower versions change nothing."""
    return with_features(protocol, implied_features(reader_version, writer_version))


def merged(protocol: Protocol, other: Protocol) -> Protocol:
    """`protocol` with all features that `other` supports as well, as needed by restores and clones."""
    return with_features(protocol, supported_features(other))


def _for_readers(features: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name in features if name in FEATURES and FEATURES[name].in_reader)
