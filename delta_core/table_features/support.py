"""May this library do what was asked to this table? (PROTOCOL.md, "Protocol Evolution")."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.actions import Metadata, Protocol
from delta_core.errors import CorruptLogError, UnsupportedTableFeatureError
from delta_core.table_features.feature import (
    FEATURES,
    READ_PROBES,
    TableFacts,
    reader_features,
    writer_features,
)
from delta_core.table_features.type_widening import unsupported_changes
from delta_core.table_features.writer_kind import WriterKind, in_words

MAX_READER_VERSION = 3
MAX_WRITER_VERSION = 7


def require_read_support(
    protocol: Protocol,
    metadata: Metadata,
    *,
    has_deletion_vectors: bool = True,
    has_v2_checkpoint: bool = True,
    through_scan: bool = False,
    operation: str = "read the table",
) -> None:
    """Refuse a table whose rows could be misread.

    A known feature that the table lists but does not use is no obstacle; an unknown one always is.

    Args:
        protocol: the table's protocol.
        metadata: the table's metadata.
        has_deletion_vectors: False when no live file is known to have one.
        has_v2_checkpoint: False when the version does not come from one.
        through_scan: rows are read with everything that changes what a data file's rows mean.
        operation: what was asked, for the message.

    Raises:
        UnsupportedTableFeatureError: names each feature that stands in the way, and the operation.
        CorruptLogError: columns are mapped, and the protocol does not say so.
    """
    if protocol.min_reader_version > MAX_READER_VERSION:
        raise _newer_version("reader", protocol.min_reader_version, MAX_READER_VERSION, operation)
    facts = TableFacts(
        metadata=metadata, has_deletion_vectors=has_deletion_vectors, has_v2_checkpoint=has_v2_checkpoint
    )
    listed = reader_features(protocol)
    refused = [name for name in sorted(listed) if not _may_read(name, facts, through_scan)]
    if refused:
        if all(_may_read(name, facts, True) for name in refused):
            raise _not_plain(refused, operation)
        raise _unsupported(refused, operation)
    if FEATURES["columnMapping"].active(facts) and "columnMapping" not in listed:
        raise CorruptLogError(
            f"Cannot {operation}: its columns are mapped, and its protocol does not say so.",
            cause="The property delta.columnMapping.mode is set, and the feature columnMapping is not "
            "listed: other engines would look for the columns under other names.",
            fix="Restore the table, with the engine that set the property, to a version before it.",
        )
    changes = sorted(set(unsupported_changes(metadata)))
    if changes and {"typeWidening", "typeWidening-preview"} & listed:
        raise UnsupportedTableFeatureError(
            f"Cannot {operation}: unsupported table feature typeWidening.",
            cause=f"A column's type changed from {changes[0]}, which is none of the protocol's widenings.",
            fix="Use an engine that supports the change, or rewrite the table with it.",
        )


def require_log_support(protocol: Protocol, *, operation: str) -> None:
    """Refuse a table whose list of files could be wrong: one with unknown reader features.

    Features that are known and only change how rows are read (deletion vectors, column mapping) do not
    matter here.

    Raises:
        UnsupportedTableFeatureError: names each feature that stands in the way, and the operation.
    """
    if protocol.min_reader_version > MAX_READER_VERSION:
        raise _newer_version("reader", protocol.min_reader_version, MAX_READER_VERSION, operation)
    refused = [name for name in sorted(reader_features(protocol)) if name not in FEATURES]
    if refused:
        raise _unsupported(refused, operation)


def require_write_support(
    protocol: Protocol,
    metadata: Metadata,
    *,
    writer_kind: WriterKind,
    has_deletion_vectors: bool = True,
    has_v2_checkpoint: bool = True,
    operation: str = "write to the table",
) -> None:
    """Refuse a table that a writer of ours could damage. Includes `require_read_support`.

    Args:
        protocol: the table's protocol.
        metadata: the table's metadata.
        surface: who writes; a feature that is in use must be written correctly by it.
        has_deletion_vectors: False when no live file is known to have one.
        has_v2_checkpoint: False when the version does not come from one.
        operation: what was asked, for the message.

    Raises:
        UnsupportedTableFeatureError: names each feature that stands in the way, and the operation.
    """
    require_read_support(
        protocol,
        metadata,
        has_deletion_vectors=has_deletion_vectors,
        has_v2_checkpoint=has_v2_checkpoint,
        through_scan=not writer_kind.opens_data_files,
        operation=operation,
    )
    if protocol.min_writer_version > MAX_WRITER_VERSION:
        raise _newer_version("writer", protocol.min_writer_version, MAX_WRITER_VERSION, operation)
    facts = TableFacts(
        metadata=metadata, has_deletion_vectors=has_deletion_vectors, has_v2_checkpoint=has_v2_checkpoint
    )
    refused = [name for name in sorted(writer_features(protocol)) if not _may_write(name, facts, writer_kind)]
    if refused:
        raise _unsupported(refused, operation, writer_kind)


def _may_read(name: str, facts: TableFacts, through_scan: bool) -> bool:
    feature = FEATURES.get(name)
    if feature is None:
        return False
    readable = feature.readable and (through_scan or feature.plain_rows)
    return readable or not READ_PROBES.get(name, feature.active)(facts)


def _may_write(name: str, facts: TableFacts, writer_kind: WriterKind) -> bool:
    feature = FEATURES.get(name)
    if feature is None:
        return False
    return writer_kind in feature.writable_by or not feature.active(facts)


def _unsupported(
    names: Iterable[str], operation: str, writer_kind: WriterKind | None = None
) -> UnsupportedTableFeatureError:
    listed = list(names)
    unknown = [name for name in listed if name not in FEATURES]
    cause = "The table uses a feature that this version of deltaward does not support"
    if writer_kind is not None and len(unknown) < len(listed):
        cause += f" for {writer_kind.words}"
    if unknown:
        cause += f" ({', '.join(unknown)}: not known at all)"
    fix = "Use an engine that supports the feature, or drop the feature from the table with it."
    able = None if writer_kind is None else _able(listed)
    if able:
        fix += f" What deltaward does to such a table: {able}."
    return UnsupportedTableFeatureError(
        f"Cannot {operation}: unsupported table feature {', '.join(listed)}.", cause=cause + ".", fix=fix
    )


def _not_plain(names: Iterable[str], operation: str) -> UnsupportedTableFeatureError:
    return UnsupportedTableFeatureError(
        f"Cannot {operation}: unsupported table feature {', '.join(names)}.",
        cause="The data files are read as plain Parquet here, as Spark jobs do, and such a table's do not "
        "say all by themselves.",
        fix="Use delta_core for it (DeltaTable and write_deltalake), or take the feature away with "
        "alter.drop_feature.",
    )


def _able(names: Iterable[str]) -> str:
    """The surfaces that could do with all of these features, in words."""
    known = [FEATURES[name].writable_by if name in FEATURES else frozenset() for name in names]
    return in_words(frozenset.intersection(*known))


def _newer_version(side: str, version: int, highest: int, operation: str) -> UnsupportedTableFeatureError:
    return UnsupportedTableFeatureError(
        f"Cannot {operation}: it needs {side} version {version}.",
        cause=f"The highest {side} version there is support for is {highest}.",
        fix="Use an engine that supports the version.",
    )
