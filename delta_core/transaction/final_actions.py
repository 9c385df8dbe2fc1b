"""Turns the actions that an operation staged into the checked actions of its commit."""

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
from delta_core.transaction.in_commit_time import begin_in_commit_times, with_enablement_properties
from delta_core.transaction.row_ids import require_enablement


class Definition(NamedTuple):
    """A table definition: protocol and metadata."""

    protocol: Protocol
    metadata: Metadata


def definition_after(base: Snapshot | None, actions: Sequence[Action]) -> Definition:
    """The table definition after the actions are committed.

    Args:
        base: the table before the commit; None for a table that is created.
        actions: the actions of the commit. To create a table they must include a protocol and metadata.
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
    """The actions of the commit without `commitInfo`, which differs in each attempt.

    Each key becomes a `txn` action, unless a `txn` of its application id is staged. Where the table
    definition changes, the metadata also records derived properties, such as the version from which commits
    have in-commit timestamps.

    Args:
        staged: the actions that the operation staged.
        base: the table before the commit; None for a table that is created.
        operation: the name of the operation, for messages.
        writer_kind: the kind of the writer that commits.
        keys: the idempotency key and the delivery, where given. Their time is `now_ms` where they have none.
        reuses_files: see `require_files`.
        now_ms: the time of the commit's first attempt.

    Raises:
        CommitError: the actions contradict each other, or the protocol or metadata of a new table is missing.
        InvalidTableError: the table is append-only and rows are removed, or row tracking cannot be enabled.
        UnsupportedTableFeatureError: the table definition requires a feature that the writer does not
            support.
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
        raise CommitError("The commit has more than one protocol or metadata action.")
    if base is None and not (protocols and metadatas):
        raise CommitError("The commit creates a table and has no protocol or no metadata.")
    require_files(actions, base=base, operation=operation, reuses_files=reuses_files)
    if not protocols and not metadatas:
        return actions
    protocol, metadata = definition_after(base, actions)
    require_write_support(protocol, metadata, writer_kind=writer_kind)
    settled = with_enablement_properties(base, protocol, metadata)
    # A commit that enables in-commit timestamps records that in its metadata, even when the operation
    # changes only the protocol.
    if settled is not metadata or (not metadatas and begin_in_commit_times(base, protocol, metadata)):
        actions = [a for a in actions if not isinstance(a, Metadata)] + [settled]
    require_enablement(base, protocol, settled, actions)
    return actions


def _unstaged(keys: Sequence[SetTransaction], staged: set[str]) -> list[SetTransaction]:
    return [key for key in {key.app_id: key for key in keys}.values() if key.app_id not in staged]


def require_files(
    actions: Sequence[Action], *, base: Snapshot | None, operation: str, reuses_files: bool
) -> None:
    """Refuse files that contradict each other, or the table's properties before and after the commit.

    Args:
        actions: the actions of the commit.
        base: the table before the commit; None for a table that is created.
        operation: the name of the operation, for messages.
        reuses_files: whether the commit restores an earlier state as a whole. The properties that it sets
            then apply only to later commits.

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
