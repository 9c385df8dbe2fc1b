"""Turns the actions that an operation staged into the checked actions of its commit.

Every operation's commit is checked against the rules of Iceberg compatibility (PROTOCOL.md, "Iceberg
Compatibility V1" and "Iceberg Compatibility V2"), as far as the log shows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from delta_core.actions import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile, SetTransaction
from delta_core.errors import CommitError, InvalidTableError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.iceberg_compat import (
    LoggedFile,
    active_compatibility,
    require_iceberg_compatibility,
)
from delta_core.table_features.support import require_write_support
from delta_core.table_features.table_properties import TableProperties
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


def require_consistent_files(
    actions: Sequence[Action],
    *,
    operation: str,
    before: TableProperties | None,
    after: TableProperties | None,
) -> None:
    """Refuse a commit whose files contradict each other or the table (PROTOCOL.md, "Append-only Tables").

    Args:
        actions: the actions of the commit.
        operation: the name of the operation, for messages.
        before: the table's properties before the commit; None for a table that is created.
        after: the properties that the commit sets; None when it sets none that apply to it.

    Raises:
        CommitError: the commit adds a file twice, removes it twice, or adds and removes it; or a file has a
            deletion vector and no row count.
        InvalidTableError: rows are removed from a table that is append-only, or that this commit makes so.
    """
    adds = [a for a in actions if isinstance(a, AddFile)]
    if len({a.path for a in adds}) != len(adds):
        raise CommitError("The commit adds the same file twice.")
    removes = [a for a in actions if isinstance(a, RemoveFile)]
    removed = {_identity(r) for r in removes}
    if len(removed) != len(removes):
        raise CommitError("The commit removes the same file twice.")
    both = next((a.path for a in adds if removed and _identity(a) in removed), None)
    if both is not None:
        raise CommitError(
            f"The commit adds and removes the file {both!r}.",
            cause="Both actions have the same deletion vector, so readers cannot decide whether the file is "
            "live.",
            fix="Add the file again without a remove, or give the add another deletion vector.",
        )
    uncounted = next((a.path for a in adds if a.deletion_vector is not None and not _has_row_count(a)), None)
    if uncounted is not None:
        raise CommitError(
            f"The file {uncounted!r} has a deletion vector but no row count.",
            cause="Readers need numRecords in its statistics, with the deleted rows included.",
            fix="Set numRecords to the row count in the file's footer.",
        )
    if not any(r.data_change for r in removes):
        return
    if before is not None and before.append_only:
        raise InvalidTableError(
            f"The table is append-only, so {operation} cannot remove rows.",
            cause="The table property delta.appendOnly is true.",
            fix="Append instead, or set delta.appendOnly to false first.",
        )
    if after is not None and after.append_only:
        raise InvalidTableError(
            f"The table becomes append-only, so {operation} cannot remove rows.",
            cause="The same commit sets the table property delta.appendOnly to true.",
            fix="Remove the rows first, and set the property in a separate commit.",
        )


def _untouched_files(base: Snapshot, actions: Sequence[Action]) -> Iterator[LoggedFile]:
    """The live files that the commit neither adds nor removes."""
    touched = {canonical_log_path(a.path) for a in actions if isinstance(a, AddFile | RemoveFile)}
    for batch in base.files.batches(["path", "stats", "deletion_vector"]):
        for path, stats, dv in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if canonical_log_path(path) not in touched:
                yield LoggedFile(path=path, stats=stats, has_deletion_vector=dv is not None)


def _has_row_count(add: AddFile) -> bool:
    """Whether the statistics have `numRecords` (PROTOCOL.md, "Writer Requirement for Deletion Vectors")."""
    try:
        count = orjson.loads(add.stats or "{}").get("numRecords")
    except (orjson.JSONDecodeError, AttributeError):
        return False
    return type(count) is int and count >= 0


def _identity(file: AddFile | RemoveFile) -> tuple[str, str | None]:
    return file.path, None if file.deletion_vector is None else file.deletion_vector.unique_id
