"""A transaction: it stages actions and reads, then commits them as one version of the table or not at all."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NoReturn, Self
from uuid import uuid4

from delta_core.actions import Action
from delta_core.boundary import public_class, refuse_pickle
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import CommitError, DeltaError
from delta_core.expressions.ast import Expression
from delta_core.log.commit_reader import CommitData
from delta_core.log.outer_tables import require_separate_directory
from delta_core.snapshot.monotonic_versions import note_version
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import (
    AlreadyApplied,
    CommitResult,
    Committed,
    Conflict,
    already_applied,
    covering,
    superseding,
)
from delta_core.transaction.committer import CommitRequest, Committer
from delta_core.transaction.conflict_resolver import ConflictResolver
from delta_core.transaction.final_actions import (
    check_iceberg_rules,
    definition_after,
    final_actions,
    require_files,
)
from delta_core.transaction.in_commit_time import has_in_commit_times, in_commit_time
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.log_tail_guard import LogTailGuard, StagedFiles, staged_paths
from delta_core.transaction.observer import NULL_OBSERVER, CommitPhase, TransactionObserver
from delta_core.transaction.read_set import ReadSet, footprint_of
from delta_core.transaction.rebase import RebaseHook
from delta_core.transaction.reordering import ConflictCheck
from delta_core.transaction.row_ids import row_ids
from delta_core.transaction.staged_commit import (
    StagedCommit,
    commit_info,
    encode_metrics,
    encode_parameters,
    recounted,
)
from delta_core.transaction.winning_commit import WinningCommit

_log = logging.getLogger(__name__)

MAX_COMMITS_IN_SEGMENT = 500
"""A snapshot of more commits than this is loaded again once in as many versions, to use a new checkpoint."""


@public_class
class Transaction:
    """Stages actions and reads, then commits them as one version.

    Use `begin` for a table that exists and `create` for a table that does not. A transaction commits once.
    Staging makes no request. `commit` makes two requests when no other writer interferes: it checks that the
    version that was read still exists, and writes the next version. Creating a table takes one request.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        snapshot: Snapshot | None,
        operation: str,
        operation_parameters: Mapping[str, Any] | None,
        properties: CommitProperties,
        isolation: IsolationLevel | None,
        observer: TransactionObserver,
        clock: Clock,
        random: Random,
        verified_at_ms: int | None,
        writer_kind: WriterKind = WriterKind.COMMIT,
        resolver: ConflictResolver | None = None,
    ) -> None:
        self.store = store
        self.snapshot = snapshot
        self.properties = properties
        self.txn_id = str(uuid4())
        self._operation = operation
        self._parameters = encode_parameters(operation_parameters or {})
        self._metrics: dict[str, str] = {}
        self._isolation = isolation
        self._observer = observer
        self._clock = clock
        self._random = random
        self._resolver = resolver
        self._writer_kind = writer_kind
        self._verified_at_ms = clock.now_ms() if verified_at_ms is None else verified_at_ms
        self._is_blind = snapshot is None and verified_at_ms is None
        self._actions: list[Action] = []
        self._reads_whole_table = False
        self._predicates: list[Expression] = []
        self._read_files: set[str] | None = None
        self._reuses_files = False
        self._rows_preserved: bool | None = None
        self._prepared: StagedCommit | None = None
        self._finished = False

    def __reduce__(self) -> NoReturn:
        """Raises ConfigurationError, which states what to do instead."""
        raise refuse_pickle(
            "A Transaction",
            "Begin and commit it in one process. Actions and reads of other processes can be added to it "
            "there.",
        )

    @classmethod
    def begin(
        cls,
        snapshot: Snapshot,
        *,
        operation: str,
        writer_kind: WriterKind = WriterKind.COMMIT,
        operation_parameters: Mapping[str, Any] | None = None,
        properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
        isolation: IsolationLevel | None = None,
        observer: TransactionObserver = NULL_OBSERVER,
        clock: Clock = SYSTEM_CLOCK,
        random: Random | None = None,
        verified_at_ms: int | None = None,
        resolver: ConflictResolver | None = None,
    ) -> Self:
        """A transaction on an existing table.

        Args:
            snapshot: the version that the operation is based on.
            operation: the operation's name in the history, such as `WRITE` or `OPTIMIZE`.
            writer_kind: the kind of this writer. It must support every feature that the table uses.
            operation_parameters: the parameters in the history. Values that are not strings are stored as
                JSON.
            properties: provenance, idempotency key and limits.
            isolation: overrides the table's level (`delta.isolationLevel`).
            observer: is called at each phase of the commit.
            clock: the source of time.
            random: the source of jitter.
            verified_at_ms: when the snapshot was last known to be the newest; None means when it was loaded.
            resolver: settles by rows conflicts that the rules find by files.

        Raises:
            UnsupportedTableFeatureError: the table needs a feature that this writer does not support.
        """
        snapshot.require_writable(writer_kind=writer_kind, operation=f"commit {operation}")
        return cls(
            store=snapshot.store,
            snapshot=snapshot,
            operation=operation,
            writer_kind=writer_kind,
            operation_parameters=operation_parameters,
            properties=properties,
            isolation=isolation,
            observer=observer,
            clock=clock,
            random=random or Random(),
            verified_at_ms=snapshot.verified_at_ms if verified_at_ms is None else verified_at_ms,
            resolver=resolver,
        )

    @classmethod
    def create(
        cls,
        store: LogStore,
        *,
        operation: str = "CREATE TABLE",
        writer_kind: WriterKind = WriterKind.COMMIT,
        operation_parameters: Mapping[str, Any] | None = None,
        properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
        isolation: IsolationLevel | None = None,
        observer: TransactionObserver = NULL_OBSERVER,
        clock: Clock = SYSTEM_CLOCK,
        random: Random | None = None,
        verified_at_ms: int | None = None,
    ) -> Self:
        """A transaction that creates version 0. Its actions must include a protocol and metadata.

        When another writer creates the table first, `commit` returns a `Conflict` of the rule
        `protocol_changed`. The arguments are those of `begin`, except for `verified_at_ms`.

        Args:
            verified_at_ms: when a check last found no table. When no check was made (None), the commit checks
                before and after its write, because version 0 is also free after a log cleanup.

        Raises:
            NestedTableError: the directory belongs to another table.
        """
        require_separate_directory(store)
        return cls(
            store=store,
            snapshot=None,
            operation=operation,
            writer_kind=writer_kind,
            operation_parameters=operation_parameters,
            properties=properties,
            isolation=isolation,
            observer=observer,
            clock=clock,
            random=random or Random(),
            verified_at_ms=verified_at_ms,
        )

    @property
    def read_version(self) -> int:
        """The version that the transaction is based on; -1 for a table to be created."""
        return self.snapshot.version if self.snapshot is not None else -1

    def read_predicate(self, expression: Expression | None) -> Self:
        """Add rows that match a resolved predicate to the read set; None stands for the whole table."""
        if expression is None:
            self._reads_whole_table = True
        else:
            self._predicates.append(expression)
        return self

    def read_files(self, paths: Iterable[str]) -> Self:
        """Add files (paths as in the log) to the read set.

        When files are named, only the removal of these files conflicts. With predicates only, the removal of
        any file that may match conflicts.
        """
        if self._read_files is None:
            self._read_files = set()
        self._read_files.update(canonical_log_path(path) for path in paths)
        return self

    def reuse_files(self) -> Self:
        """Declare that the commit adds files of an earlier state, which a vacuum may be about to delete.

        The commit restores that state as a whole. When the restored state is append-only, the commit may
        still remove rows that were added since.
        """
        self._reuses_files = True
        return self

    def preserve_rows(self, preserved: bool) -> Self:
        """Declare whether updated and copied rows kept their row ids, and copied rows their commit versions.

        Only a table with row tracking records this (`delta.rowTracking.preserved`). Without a declaration,
        a commit that moves no row counts as preserving, and any other commit does not.
        """
        self._rows_preserved = preserved
        return self

    def add(self, *actions: Action) -> Self:
        """Stage actions. `commit` adds `commitInfo` and the `txn` of the idempotency key."""
        if self._prepared is not None:
            raise CommitError("The transaction is sealed.", fix="Stage every action before prepare().")
        self._actions.extend(actions)
        return self

    def set_metrics(self, metrics: Mapping[str, Any]) -> Self:
        """Set operation metrics, in addition to those of earlier calls. They are stored as strings."""
        self._metrics.update(encode_metrics(metrics))
        return self

    def prepare(self) -> Self:
        """Check the staged actions and seal them; nothing is written to the store.

        `commit` does this too. Calling `prepare` first separates errors that certainly left no trace in the
        log from the results of `commit`. For a table with in-commit timestamps or row tracking it needs the
        last commit's time and the row id high-water mark. A snapshot usually has both, else each takes one
        request.

        Raises:
            CommitError: the staged actions contradict each other, readers would refuse an action, or row ids
                cannot be assigned to a new file.
            IcebergCompatibilityError: the table would break a rule of an active Iceberg compatibility.
            InvalidTableError: the table is append-only and the actions remove rows, or row tracking cannot be
                enabled.
            UnsupportedTableFeatureError: the staged protocol or metadata require an unsupported feature.
        """
        if self._prepared is None:
            actions = self._final_actions()
            staged = self._stage(actions, self._rebase_hooks(actions))
            staged.render(self.read_version + 1)
            self._prepared = staged
        return self

    def commit(self) -> CommitResult:
        """Commit once, retrying past other writers where the conflict rules allow it.

        Returns:
            One of the results of `commit_result`. Store errors are results, not exceptions.

        Raises:
            CommitError: this transaction was already committed.
            DeltaError: the errors of `prepare`.
        """
        if self._finished:
            raise CommitError("The transaction was already committed.", fix="Begin a new transaction.")
        self._finished = True
        if self.snapshot is not None:
            applied = already_applied(
                self.snapshot, self.properties.txn, delivery=self.properties.delivery, txn_id=self.txn_id
            )
            if applied is not None:
                return applied
        self.prepare()
        staged, self._prepared = self._prepared, None
        assert staged is not None
        actions = staged.actions
        self._observer.on_phase(CommitPhase.PREPARED, self.read_version + 1)
        guard = self._guard(actions)
        committer = Committer(
            store=self.store,
            request=CommitRequest(
                txn_id=self.txn_id,
                read_version=self.read_version,
                render=staged.render,
                examine=lambda winner: self._examine(staged, winner, guard),
                max_attempts=self.properties.max_attempts,
                deadline_seconds=self.properties.deadline_seconds,
                has_key=self.properties.txn is not None,
            ),
            guard=guard,
            clock=self._clock,
            random=self._random,
            observer=self._observer,
        )
        began_ms = self._clock.now_ms()
        result = committer.run()
        if not isinstance(result, Committed):
            return result
        note_version(self.store, definition_after(self.snapshot, actions).metadata.id, result.version)
        snapshot = self._snapshot_after(committer.tail)
        if snapshot is not None:  # after a pause that followed the write, the view of the table is outdated
            snapshot.verified_at_ms = min(snapshot.verified_at_ms, began_ms)
        if result.already_applied:
            return replace(result, snapshot=snapshot)
        return replace(result, operation_metrics=dict(self._metrics), snapshot=snapshot)

    def _guard(self, actions: Sequence[Action]) -> LogTailGuard:
        properties = TableProperties.of(definition_after(self.snapshot, actions).metadata.configuration)
        return LogTailGuard(
            store=self.store,
            clock=self._clock,
            verified_at_ms=self._verified_at_ms,
            log_retention_ms=properties.log_retention_ms,
            version_file=None if self.snapshot is None else self.snapshot.segment.version_file,
            creates=self.snapshot is None,
            is_blind=self._is_blind,
            staged=StagedFiles(
                store=self.store,
                clock=self._clock,
                paths=staged_paths(actions, root_uri=self.store.uri),
                since_ms=self._verified_at_ms,
                retention_ms=properties.deleted_file_retention_ms,
            ),
        )

    def _final_actions(self) -> list[Action]:
        actions = final_actions(
            self._actions,
            base=self.snapshot,
            operation=self._operation,
            writer_kind=self._writer_kind,
            keys=[
                *self.properties.app_transactions,
                *(key for key in (self.properties.txn, self.properties.delivery) if key is not None),
            ],
            reuses_files=self._reuses_files,
            now_ms=self._clock.now_ms(),
        )
        if check_iceberg_rules(self.snapshot, actions, operation=self._operation):
            # A file that another writer adds before the commit has not been checked.
            self._reads_whole_table, self._isolation = True, IsolationLevel.SERIALIZABLE
        return actions

    def _rebase_hooks(self, actions: Sequence[Action]) -> tuple[RebaseHook, ...]:
        protocol, metadata = definition_after(self.snapshot, actions)
        if protocol.writer_features is None:
            return ()  # The features with rebase hooks exist only in protocols that list features.
        active = has_in_commit_times(protocol, metadata)
        hooks = (
            in_commit_time(self.snapshot, self.store, active=active),
            row_ids(self.snapshot, protocol, metadata, actions, preserved=self._rows_preserved),
        )
        return tuple(rebase_hook for rebase_hook in hooks if rebase_hook is not None)

    def _stage(self, actions: Sequence[Action], rebase_hooks: tuple[RebaseHook, ...]) -> StagedCommit:
        footprint = footprint_of(
            actions,
            base=self.snapshot,
            reads=ReadSet(
                whole_table=self._reads_whole_table,
                predicates=tuple(self._predicates),
                files=frozenset(self._read_files) if self._read_files is not None else None,
            ),
            isolation=self._isolation,
            reuses_files=self._reuses_files,
            rebased_domains=frozenset().union(*(rebase_hook.domains for rebase_hook in rebase_hooks)),
            verified_at_ms=self._verified_at_ms,
        )
        return StagedCommit(
            actions=actions,
            examination=ConflictCheck(transaction=footprint),
            rebase_hooks=rebase_hooks,
            info=lambda version: commit_info(
                operation=self._operation,
                parameters=self._parameters,
                metrics=self._metrics,
                properties=self.properties,
                isolation=footprint.isolation,
                is_blind_append=footprint.is_blind_append,
                read_version=version - 1,
                txn_id=self.txn_id,
                timestamp_ms=self._clock.now_ms(),
            ),
        )

    def _examine(
        self, staged: StagedCommit, winner: WinningCommit, guard: LogTailGuard
    ) -> Conflict | AlreadyApplied | None:
        recorded = covering(winner.transactions, self.properties.txn) or superseding(
            winner.transactions, self.properties.delivery
        )
        if recorded is not None:
            return AlreadyApplied(version=winner.version, txn_id=self.txn_id, transaction=recorded)
        tried: set[str] = set()
        rest = winner
        while (violation := staged.examination.examine(rest)) is not None:
            resolved = None
            # A resolver compares rows, which cannot settle a conflict about the order of three transactions.
            may_resolve = violation.rule not in tried and staged.examination.examine_order(winner) is None
            if self._resolver is not None and may_resolve:
                tried.add(violation.rule)
                resolved = self._resolver.resolve(
                    violation, rest, staged.actions, transaction=staged.examination.with_moved_files
                )
            if resolved is None:
                return Conflict(winner=violation.winner, rule=violation.rule, error=violation.error)
            require_files(
                resolved.actions,
                base=self.snapshot,
                operation=self._operation,
                reuses_files=self._reuses_files,
            )
            staged.replace_actions(self._stage(list(resolved.actions), staged.rebase_hooks))
            guard.replace_actions(resolved.actions)
            self._metrics = recounted(self._metrics, resolved.counts)
            rest = resolved.rest
        try:
            staged.follow(winner)
        except DeltaError as error:
            return Conflict(winner=winner.version, rule="unreadable_winner", error=error)
        return None

    def _snapshot_after(self, tail: Sequence[CommitData]) -> Snapshot | None:
        """The table after the commit. None rather than an error, because the commit succeeded."""
        try:
            if self.snapshot is None or self._should_reload(tail):
                loaded = Snapshot.load(self.store, clock=self._clock)
                # After a pause, the version may have been cleaned up and another table created there.
                return loaded if loaded.metadata.id == self._table_id(tail) else None
            return self.snapshot.advance(tail)
        except Exception as error:  # a store may raise undocumented exceptions
            _log.warning("the table could not be read after the commit", extra={"error": str(error)})
            return None

    def _table_id(self, tail: Sequence[CommitData]) -> str | None:
        if self.snapshot is not None:
            return self.snapshot.metadata.id
        _, metadata = tail[-1].protocol_and_metadata()
        return None if metadata is None else metadata.id

    def _should_reload(self, tail: Sequence[CommitData]) -> bool:
        if len(self._base().segment.commits) < MAX_COMMITS_IN_SEGMENT:
            return False
        # Where no writer makes checkpoints, loading again does not make the log segment shorter.
        return self._base().version // MAX_COMMITS_IN_SEGMENT != tail[-1].version // MAX_COMMITS_IN_SEGMENT

    def _base(self) -> Snapshot:
        # Only a transaction on an existing table calls this method.
        assert self.snapshot is not None
        return self.snapshot
