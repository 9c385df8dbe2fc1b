"""Checks whether this library supports an operation on a table (PROTOCOL.md, "Protocol Evolution")."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.actions import Metadata, Protocol
from delta_core.errors import CorruptLogError, UnsupportedTableFeatureError
from delta_core.table_features.feature import (
    FEATURES,
    READ_PROBES,
    TableFacts,
    WriterKind,
    in_words,
    reader_features,
    writer_features,
)
from delta_core.table_features.type_widening import unsupported_changes

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

    A known feature that is listed but not in use is accepted; an unknown feature is always refused.

    Args:
        protocol: the table's protocol.
        metadata: the table's metadata.
        has_deletion_vectors: False when it is known that no live file has a deletion vector.
        has_v2_checkpoint: False when the version is not read from a V2 checkpoint.
        through_scan: whether rows are read with full support for the features that change their meaning.
        operation: the requested operation, for the message.

    Raises:
        UnsupportedTableFeatureError: the message lists each unsupported feature, and the operation.
        CorruptLogError: columns are mapped, and the protocol does not list column mapping.
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
            f"Cannot {operation}: its columns are mapped, and its protocol does not list columnMapping.",
            cause="The property delta.columnMapping.mode is set without the feature columnMapping: other "
            "engines would search for the columns under other names.",
            fix="Restore an earlier version of the table with the engine that set the property.",
        )
    changes = sorted(set(unsupported_changes(metadata)))
    if changes and {"typeWidening", "typeWidening-preview"} & listed:
        raise UnsupportedTableFeatureError(
            f"Cannot {operation}: unsupported table feature typeWidening.",
            cause=f"A column's type changed from {changes[0]}, which the protocol does not allow.",
            fix="Use an engine that supports the change, or rewrite the table with that engine.",
        )


def require_log_support(protocol: Protocol, *, operation: str) -> None:
    """Refuse a table whose list of files could be wrong, because it has unknown reader features.

    Known features that only change how rows are read (deletion vectors, column mapping) are accepted here.

    Raises:
        UnsupportedTableFeatureError: the message lists each unsupported feature, and the operation.
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
    """Refuse a table that a writer of this library could damage. Includes `require_read_support`.

    Args:
        protocol: the table's protocol.
        metadata: the table's metadata.
        writer_kind: the kind of writer; it must support every feature that is in use.
        has_deletion_vectors: False when it is known that no live file has a deletion vector.
        has_v2_checkpoint: False when the version is not read from a V2 checkpoint.
        operation: the requested operation, for the message.

    Raises:
        UnsupportedTableFeatureError: the message lists each unsupported feature, and the operation.
    """
    require_read_support(
        protocol,
        metadata,
        has_deletion_vectors=has_deletion_vectors,
        has_v2_checkpoint=has_v2_checkpoint,
        through_scan=True,
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
        cause += f" (unknown: {', '.join(unknown)})"
    fix = "Use an engine that supports the feature, or drop the feature from the table with that engine."
    able = None if writer_kind is None else _able(listed)
    if able:
        fix += f" For such a table deltaward supports {able}."
    return UnsupportedTableFeatureError(
        f"Cannot {operation}: unsupported table feature {', '.join(listed)}.", cause=cause + ".", fix=fix
    )


def _not_plain(names: Iterable[str], operation: str) -> UnsupportedTableFeatureError:
    return UnsupportedTableFeatureError(
        f"Cannot {operation}: unsupported table feature {', '.join(names)}.",
        cause="The operation reads data files as plain Parquet, but with this feature the rows "
        "also depend on the log.",
        fix="Use delta_core for the operation (DeltaTable and write_deltalake), read the rows with "
        "spark_jobs.read, or remove the feature with alter.drop_feature.",
    )


def _able(names: Iterable[str]) -> str:
    """The writer kinds that support all of these features, as part of a sentence."""
    supported = [FEATURES[name].writable_by if name in FEATURES else frozenset() for name in names]
    return in_words(frozenset.intersection(*supported))


def _newer_version(side: str, version: int, highest: int, operation: str) -> UnsupportedTableFeatureError:
    return UnsupportedTableFeatureError(
        f"Cannot {operation}: it needs {side} version {version}.",
        cause=f"The highest supported {side} version is {highest}.",
        fix="Use an engine that supports the version.",
    )
