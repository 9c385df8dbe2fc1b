"""The rules of Iceberg compatibility, held against every commit.

PROTOCOL.md, "Iceberg Compatibility V1" and "Iceberg Compatibility V2". Whoever stages the actions: what would
break a rule that the log shows is refused here, before anything is written to the log.
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


def keep_iceberg_rules(base: Snapshot | None, actions: Sequence[Action], *, operation: str) -> bool:
    """Check a commit; nothing to do where no compatibility is active after it.

    Loads the live files' statistics where the commit turns a compatibility on; they must keep the rules too.

    Args:
        base: the table before; None for one that is created.
        actions: the commit's; those that create a table have its protocol and metadata.
        operation: its name, for the message.

    Returns:
        Whether the commit turns a compatibility on for a table that exists: then it holds only as long as
        nobody adds another file.

    Raises:
        IcebergCompatibilityError: names each rule that would be broken.
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
        live=_staying(base, actions) if base is not None and begins else (),
        defines=any(isinstance(action, Protocol | Metadata) for action in actions),
        operation=operation,
    )
    return begins


def _staying(base: Snapshot, actions: Sequence[Action]) -> Iterator[LoggedFile]:
    """The live files that the commit leaves as they are."""
    touched = {canonical_log_path(a.path) for a in actions if isinstance(a, AddFile | RemoveFile)}
    for batch in base.files.batches(["path", "stats", "deletion_vector"]):
        for path, stats, dv in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if canonical_log_path(path) not in touched:
                yield LoggedFile(path=path, stats=stats, has_deletion_vector=dv is not None)
