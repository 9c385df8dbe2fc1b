"""A check of protocols for tests."""

from __future__ import annotations

from delta_core.actions import Protocol
from delta_core.table_features.feature import FEATURES, reader_features
from delta_core.table_features.upgrade import (
    FEATURE_READER_VERSION,
    FEATURE_WRITER_VERSION,
    with_dependencies,
)


def protocol_problems(protocol: Protocol) -> tuple[str, ...]:
    """The reasons why the protocol is not valid; empty when it is valid."""
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
    for_readers = {
        name for name in listed if name in FEATURES and FEATURES[name].in_reader
    } - reader_features(protocol)
    for names, wrong in (
        ((readers or frozenset()) - listed, "is listed for readers and not for writers"),
        (for_readers, "is listed for writers and not for readers"),
        (with_dependencies(listed) - listed, "is missing, although a listed feature requires it"),
    ):
        problems.extend(f"{name} {wrong}" for name in sorted(names))
    return tuple(problems)
