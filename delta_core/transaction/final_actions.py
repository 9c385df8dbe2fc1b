"""From the actions that an operation staged to those that its commit consists of, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from delta_core.actions import Action, CommitInfo, Metadata, Protocol, SetTransaction
from delta_core.errors import CommitError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.support import require_write_support
from delta_core.table_features.table_properties import TableProperties
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.file_checks import require_consistent_files
from delta_core.transaction.in_commit_time import begin_in_commit_times, settled_provenance
from delta_core.transaction.row_ids import require_enablement


class Definition(NamedTuple):
    """What a table is by its protocol and metadata."""

    protocol: Protocol
    metadata: Metadata


def definition_after(base: Snapshot | None, actions: Sequence[Action]) -> Definition:
    """The table's definition once the actions are committed.

    Args:
        base: the table before; None for one that is created.
        actions: those that create a table have its protocol and metadata.
    """
    protocol = next((a for a in actions if isinstance(a, Protocol)), None)
    metadata = next((a for a in actions if isinstance(a, Metadata)), None)
    if protocol is None or metadata is None:
        assert base is not None  # `final_actions` refuses a creation that lacks one of the two
        return Definition(protocol or base.protocol, metadata or base.metadata)
    return Definition(protocol, metadata)


def final_actions(
    staged: Sequence[Action],
    *,
    base: Snapshot | None,
    operation: str,
    writer_kind: WriterKind,
    keys: Sequence[SetTransaction],
    reuses_files: bool,
    now_ms: int,
) -> list[Action]:
    """The commit's actions but `commitInfo`, which each attempt makes anew.

    Each key becomes a `txn` action unless one of its application is staged. Where the definition changes, the
    metadata also records what follows from that, such as since when commits have times of their own.

    Args:
        staged: what the operation staged.
        base: the table before; None for one that is created.
        operation: its name, for messages.
        surface: the writer that asks.
        keys: the idempotency key and the delivery, as far as there are; their time is `now_ms` where they
            have none.
        reuses_files: see `require_files`.
        now_ms: the time of the commit's first attempt.

    Raises:
        CommitError: the actions contradict each other, or do not make a table.
        InvalidTableError: the table is append-only and rows go, or row tracking cannot be enabled.
        UnsupportedTableFeatureError: the definition asks for what the writer does not do.
    """
    actions: list[Action] = [a for a in staged if not isinstance(a, CommitInfo)]
    staged_ids = {a.app_id for a in actions if isinstance(a, SetTransaction)}
    actions = [
        *(replace(key, last_updated_ms=key.last_updated_ms or now_ms) for key in _unstaged(keys, staged_ids)),
        *actions,
    ]
    protocols = [a for a in actions if isinstance(a, Protocol)]
    metadatas = [a for a in actions if isinstance(a, Metadata)]
    if len(protocols) > 1 or len(metadatas) > 1:
        raise CommitError("A commit holds at most one protocol and one metadata action.")
    if base is None and not (protocols and metadatas):
        raise CommitError("A commit that creates a table needs a protocol and metadata.")
    require_files(actions, base=base, operation=operation, reuses_files=reuses_files)
    if not protocols and not metadatas:
        return actions
    protocol, metadata = definition_after(base, actions)
    require_write_support(protocol, metadata, writer_kind=writer_kind)
    settled = settled_provenance(base, protocol, metadata)
    # Whoever turns in-commit timestamps on says so in metadata of its own, even where only the protocol
    # changes.
    if settled is not metadata or (not metadatas and begin_in_commit_times(base, protocol, metadata)):
        actions = [a for a in actions if not isinstance(a, Metadata)] + [settled]
    require_enablement(base, protocol, settled, actions)
    return actions


def _unstaged(keys: Sequence[SetTransaction], staged: set[str]) -> list[SetTransaction]:
    return [key for key in {key.app_id: key for key in keys}.values() if key.app_id not in staged]


def require_files(
    actions: Sequence[Action], *, base: Snapshot | None, operation: str, reuses_files: bool
) -> None:
    """Refuse files that contradict each other or the table, before the commit or by what it sets.

    Args:
        reuses_files: an earlier state comes back as a whole, so what the commit sets binds later ones alone.

    Raises:
        CommitError, InvalidTableError: see `require_consistent_files`.
    """
    metadata = next((a for a in actions if isinstance(a, Metadata)), None)
    require_consistent_files(
        actions,
        operation=operation,
        before=None if base is None else base.properties,
        after=None if metadata is None or reuses_files else TableProperties.of(metadata.configuration),
    )
