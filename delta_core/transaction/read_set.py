"""What a transaction read and what it changes: the facts that the conflict rules look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta_core.actions import Action, AddFile, DomainMetadata, Metadata, Protocol, RemoveFile, SetTransaction
from delta_core.expressions.ast import Expression
from delta_core.storage.uri import canonical_log_path
from delta_core.transaction.isolation import IsolationLevel

FileMatcher = Callable[[Sequence[AddFile], Expression], AddFile | None]
"""The first of the files that may hold a row for which the predicate is true; None when none may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSet:
    """What the transaction's outcome depends on.

    Attributes:
        whole_table: every row was read, or the absence of other rows matters.
        predicates: rows matching any of these were read.
        files: keys (`canonical_log_path`) of the files whose rows were read; None when the caller named
            none, so that the predicates alone tell which files were read.
    """

    whole_table: bool = False
    predicates: tuple[Expression, ...] = ()
    files: frozenset[str] | None = None

    @property
    def is_empty(self) -> bool:
        """True when nothing was read."""
        return not self.whole_table and not self.predicates and not self.files


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFootprint:
    """A transaction as the conflict rules see it.

    Attributes:
        domains: metadata domains that the caller sets; those that a stamper follows up by itself are none.
        reuses_files: it adds data files that it did not write, and that no version may refer to by now.
        oldest_file_ms: since when a vacuum may take what it adds for left-overs: when the oldest of the files
            was written that it does not remove as well, and where it names vectors' files, `known_at_ms`.
    """

    reads: ReadSet
    removed_files: frozenset[str]
    added_files: frozenset[str]
    metadata: Metadata | None
    app_ids: frozenset[str]
    domains: frozenset[str]
    isolation: IsolationLevel
    base_metadata: Metadata | None
    matcher: FileMatcher
    reuses_files: bool = False
    oldest_file_ms: int | None = None

    @classmethod
    def of(
        cls,
        actions: Sequence[Action],
        *,
        reads: ReadSet,
        isolation: IsolationLevel,
        base_metadata: Metadata | None,
        matcher: FileMatcher,
        reuses_files: bool = False,
        rebased_domains: frozenset[str] = frozenset(),
        known_at_ms: int | None = None,
    ) -> CommitFootprint:
        """The footprint of staged actions; `rebased_domains` are those that stampers own.

        The actions say of a data file when it was written, and not of a vector's: that was after the table
        was read, at `known_at_ms`.
        """
        removed = frozenset(canonical_log_path(a.path) for a in actions if isinstance(a, RemoveFile))
        written_ms = [
            a.modification_time_ms
            for a in actions
            if isinstance(a, AddFile) and not (removed and canonical_log_path(a.path) in removed)
        ]
        if known_at_ms is not None and any(
            isinstance(a, AddFile) and _has_deletion_vector_file(a) for a in actions
        ):
            written_ms.append(known_at_ms)
        return cls(
            reads=reads,
            removed_files=removed,
            added_files=frozenset(canonical_log_path(a.path) for a in actions if isinstance(a, AddFile)),
            metadata=next((a for a in actions if isinstance(a, Metadata)), None),
            app_ids=frozenset(a.app_id for a in actions if isinstance(a, SetTransaction)),
            domains=frozenset(a.domain for a in actions if isinstance(a, DomainMetadata)) - rebased_domains,
            isolation=isolation,
            base_metadata=base_metadata,
            matcher=matcher,
            reuses_files=reuses_files,
            oldest_file_ms=min(written_ms, default=None),
        )

    @property
    def is_blind_append(self) -> bool:
        """True when the transaction only adds files and its outcome depends on no row of the table."""
        return bool(self.added_files) and not self.removed_files and self.reads.is_empty


def effective_isolation(actions: Sequence[Action], table_level: IsolationLevel) -> IsolationLevel:
    """The isolation that the actions need.

    A commit that changes no data (a rearrangement, a statistics refresh) cannot make a reader see a
    different table, so only write-write conflicts matter to it.
    """
    files = [a for a in actions if isinstance(a, AddFile | RemoveFile)]
    changes_table = any(isinstance(a, Metadata | Protocol) for a in actions)
    if files and not changes_table and not any(a.data_change for a in files):
        return IsolationLevel.SNAPSHOT_ISOLATION
    return table_level


def _has_deletion_vector_file(add: AddFile) -> bool:
    return add.deletion_vector is not None and add.deletion_vector.storage_type != "i"
