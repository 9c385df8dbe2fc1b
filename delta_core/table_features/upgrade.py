"""Protocols as sets of features: which versions say a set, and how one protocol becomes a larger one.

PROTOCOL.md, "Protocol Evolution", "Table Features", "Writer Version Requirements", "Reader Version
Requirements". A version below reader 3 and writer 7 stands for a fixed set of features; from there on the
features are listed. A table that moves from the first form to the second lists every feature that its old
versions implied, since nothing proves that one of them is not in use. A protocol never becomes smaller here:
taking a feature away is `removal`.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.actions import Protocol
from delta_core.table_features.feature import FEATURES, reader_features

DEFAULT_READER_VERSION = 1
DEFAULT_WRITER_VERSION = 2
"""Versions of a new table of which nothing else is asked."""

FEATURE_READER_VERSION = 3
FEATURE_WRITER_VERSION = 7

_LEGACY_VERSIONS = ((1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 6))


def with_dependencies(features: Iterable[str]) -> frozenset[str]:
    """The features and those that they cannot be without."""
    found: set[str] = set()
    pending = list(features)
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        if name in FEATURES:
            pending.extend(FEATURES[name].requires)
    return frozenset(found)


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Every feature that a table supports: those of its writers and those of its readers.

    A legacy version implies column mapping only where both sides do: a table that readers of version 1 may
    read maps no columns.
    """
    if protocol.min_writer_version < FEATURE_WRITER_VERSION:
        return implied_features(protocol.min_reader_version, protocol.min_writer_version)
    return (protocol.writer_features or frozenset()) | (protocol.reader_features or frozenset())


def implied_features(reader_version: int, writer_version: int) -> frozenset[str]:
    """What a pair of versions stands for by itself; nothing where features are listed."""
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
    """The lowest versions that say exactly these features.

    Low versions keep a table open to more clients: a set that a legacy version stands for is that version.
    Column mapping alone leaves readers at version 2, where its name is listed for writers only.
    """
    wanted = frozenset(features)
    for reader, writer in _LEGACY_VERSIONS:
        if implied_features(reader, writer) == wanted:
            return Protocol(min_reader_version=reader, min_writer_version=writer)
    readers = _for_readers(wanted)
    native = any(FEATURES[name].legacy_reader_version is None for name in readers)
    reader = FEATURE_READER_VERSION if native else 2 if readers else 1
    return Protocol(
        min_reader_version=reader,
        min_writer_version=FEATURE_WRITER_VERSION,
        reader_features=readers if native else None,
        writer_features=wanted,
    )


def new_protocol(
    features: Iterable[str], *, reader_version: int | None = None, writer_version: int | None = None
) -> Protocol:
    """The lowest protocol of a new table.

    Args:
        features: what it must support; their dependencies are added.
        reader_version, writer_version: what was asked for by number: a table supports what that stands for
            besides. Versions 3 and 7 stand for nothing, so with them a table supports the features alone.
    """
    implied = implied_features(
        DEFAULT_READER_VERSION if reader_version is None else reader_version,
        DEFAULT_WRITER_VERSION if writer_version is None else writer_version,
    )
    return lowest_protocol(implied | with_dependencies(features))


def with_features(protocol: Protocol, features: Iterable[str]) -> Protocol:
    """A protocol that supports these features, too, and their dependencies; the same one if it does.

    Never a lower version, and never a feature less. A protocol that lists features keeps listing them.
    """
    present = supported_features(protocol)
    wanted = present | with_dependencies(features)
    if wanted == present:
        return protocol
    if protocol.min_writer_version < FEATURE_WRITER_VERSION:
        lowest = lowest_protocol(wanted)
        if lowest.min_writer_version < FEATURE_WRITER_VERSION:
            return Protocol(
                min_reader_version=max(protocol.min_reader_version, lowest.min_reader_version),
                min_writer_version=max(protocol.min_writer_version, lowest.min_writer_version),
            )
    listed = (protocol.reader_features or frozenset()) | _for_readers(wanted)
    native = any(name not in FEATURES or FEATURES[name].legacy_reader_version is None for name in listed)
    reader = max(protocol.min_reader_version, FEATURE_READER_VERSION if native else 2 if listed else 1)
    return Protocol(
        min_reader_version=reader,
        min_writer_version=max(protocol.min_writer_version, FEATURE_WRITER_VERSION),
        reader_features=listed if reader >= FEATURE_READER_VERSION else None,
        writer_features=wanted,
    )


def with_versions(protocol: Protocol, *, reader_version: int, writer_version: int) -> Protocol:
    """A protocol that also supports what these versions stand for; lower versions change nothing."""
    return with_features(protocol, implied_features(reader_version, writer_version))


def merged(protocol: Protocol, other: Protocol) -> Protocol:
    """The first protocol with everything that the second supports, as a restore or a clone needs it."""
    return with_features(protocol, supported_features(other))


def protocol_problems(protocol: Protocol) -> tuple[str, ...]:
    """Why the protocol is not a legal one; empty when it is."""
    problems = []
    readers, writers = protocol.reader_features, protocol.writer_features
    if protocol.min_reader_version >= FEATURE_READER_VERSION:
        if protocol.min_writer_version < FEATURE_WRITER_VERSION:
            problems.append("reader version 3 lists features, and the writer version is below 7")
        if readers is None:
            problems.append("reader version 3 has no list of reader features")
    elif readers is not None:
        problems.append("reader features are listed below reader version 3")
    if protocol.min_writer_version >= FEATURE_WRITER_VERSION:
        if writers is None:
            problems.append("writer version 7 has no list of writer features")
    elif writers is not None:
        problems.append("writer features are listed below writer version 7")
    listed = writers or frozenset()
    for_readers = _for_readers(listed) - reader_features(protocol)
    for names, wrong in (
        ((readers or frozenset()) - listed, "is listed for readers and not for writers"),
        (for_readers, "is listed for writers and not known to readers"),
        (with_dependencies(listed) - listed, "is missing, which a listed feature requires"),
    ):
        problems.extend(f"{name} {wrong}" for name in sorted(names))
    return tuple(problems)


def _for_readers(features: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name in features if name in FEATURES and FEATURES[name].in_reader)
