"""Checks every commit against the rules of Iceberg compatibility.

PROTOCOL.md, "Iceberg Compatibility V1" and "Iceberg Compatibility V2". The check is the same for all
operations. It refuses a commit that would break a rule, as far as the log shows that, before anything is
written to the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from delta_core.actions import Action, AddFile, Metadata, Protocol, RemoveFile
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.iceberg_compat import (
    LoggedFile,
    active_compatibility,
    require_iceberg_compatibility,
)

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot


def check_iceberg_rules(base: Snapshot | None, actions: Sequence[Action], *, operation: str) -> bool:
    """Check a commit. Nothing is checked when no compatibility is active after it.

    Loads the statistics of the live files when the commit enables a compatibility, because the live files
    must comply with the rules too.

    Args:
        base: the table before the commit; None for a table that is created.
        actions: the actions of the commit. To create a table they must include a protocol and metadata.
        operation: the name of the operation, for the message.

    Returns:
        Whether the commit enables a compatibility on an existing table. The check is then valid only as long
        as no other writer adds a file.

    Raises:
        IcebergCompatibilityError: the commit would break a rule. The message names each one.
    """
    protocol = next((a for a in actions if isinstance(a, Protocol)), None if base is None else base.protocol)
    metadata = next((a for a in actions if isinstance(a, Metadata)), None if base is None else base.metadata)
    if protocol is None or metadata is None:
        return False
    active = active_compatibility(protocol, metadata)
    if not active:
        return False
    before = () if base is None else active_compatibility(base.protocol, base.metadata)
    begins = base is not None and not set(active) <= set(before)
    require_iceberg_compatibility(
        protocol,
        metadata,
        actions=actions,
        previous=None if base is None else base.metadata,
        live=_untouched_files(base, actions) if base is not None and begins else (),
        defines=any(isinstance(action, Protocol | Metadata) for action in actions),
        operation=operation,
    )
    return begins


def _untouched_files(base: Snapshot, actions: Sequence[Action]) -> Iterator[LoggedFile]:
    """The live files that the commit neither adds nor removes."""
    touched = {canonical_log_path(a.path) for a in actions if isinstance(a, AddFile | RemoveFile)}
    for batch in base.files.batches(["path", "stats", "deletion_vector"]):
        for path, stats, dv in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if canonical_log_path(path) not in touched:
                yield LoggedFile(path=path, stats=stats, has_deletion_vector=dv is not None)
