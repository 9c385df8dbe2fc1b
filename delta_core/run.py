"""The surroundings of an operation: one value in place of the clock, the executor, the observer and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

# `DeltaTable` imports this module, and opening a table must not load the code of commits.
from delta_core import transaction
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.execution.executor import Executor
from delta_core.execution.progress import SILENT, ProgressReporter
from delta_core.storage.data_access import DataAccess
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.parquet_format import ParquetOptions
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    require_commit_properties,
)
from delta_core.transaction.commit_result import AlreadyApplied, already_applied
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot
    from delta_core.storage.log_store import LogStore
    from delta_core.transaction.conflict_resolver import ConflictResolver
    from delta_core.transaction.isolation import IsolationLevel
    from delta_core.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The surroundings of one run of an operation. The operation's own arguments are not part of it.

    Raises ConfigurationError when `commit` is not a `CommitProperties`.

    Attributes:
        clock: the source of time.
        executor: runs the tasks of operations that have tasks; threads of this process when None.
        progress: receives the operation's events.
        observer: is called at each phase of each commit.
        commit: provenance, idempotency key and limits of the commits.
        parquet: the encoding of data files that row statements write; the table's when None.
        allowed_roots: stores at other locations than the table. Absolute paths in the log may refer to
            objects below their roots, as in a shallow clone; see `Scan`. Nothing is written or deleted there.
    """

    clock: Clock = SYSTEM_CLOCK
    executor: Executor | None = None
    progress: ProgressReporter = SILENT
    observer: TransactionObserver = NULL_OBSERVER
    commit: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    parquet: ParquetOptions | None = None
    allowed_roots: tuple[LogStore, ...] = ()

    def __post_init__(self) -> None:
        """Refuse values that are not commit properties, before anything is read."""
        require_commit_properties(self.commit)

    @property
    def access(self) -> DataAccess:
        """Access to the objects that the table's log lists."""
        return DataAccess(allowed_roots=self.allowed_roots, clock=self.clock)

    def now_ms(self) -> int:
        """Wall-clock time in epoch milliseconds."""
        return self.clock.now_ms()

    def with_commit(self, properties: CommitProperties) -> Run:
        """A copy of this run with `properties` in place of its commit properties."""
        return replace(self, commit=properties)

    def without_key(self) -> Run:
        """This run without the idempotency keys, for commits that only prepare or announce the work."""
        return self.with_commit(self.commit.without_key())

    def only_next(self) -> Run:
        """This run with a single attempt: a commit fails unless it is the version after its snapshot."""
        return self.with_commit(replace(self.commit, max_attempts=1))

    def already_applied(self, snapshot: Snapshot) -> AlreadyApplied | None:
        """The result of a repeated call, or None when the table does not have the idempotency key.

        Check this first: a repeated call could otherwise be refused because of its own earlier commit.
        """
        return already_applied(snapshot, self.commit.txn)

    def begin(
        self,
        snapshot: Snapshot,
        *,
        operation: str,
        writer_kind: WriterKind = WriterKind.COMMIT,
        operation_parameters: Mapping[str, Any] | None = None,
        isolation: IsolationLevel | None = None,
        verified_at_ms: int | None = None,
        resolver: ConflictResolver | None = None,
    ) -> Transaction:
        """A transaction on an existing table. The arguments are those of `Transaction.begin`."""
        return transaction.Transaction.begin(
            snapshot,
            operation=operation,
            writer_kind=writer_kind,
            operation_parameters=operation_parameters,
            properties=self.commit,
            isolation=isolation,
            observer=self.observer,
            clock=self.clock,
            verified_at_ms=verified_at_ms,
            resolver=resolver,
        )

    def create(
        self,
        store: LogStore,
        *,
        operation: str = "CREATE TABLE",
        writer_kind: WriterKind = WriterKind.COMMIT,
        operation_parameters: Mapping[str, Any] | None = None,
        verified_at_ms: int | None = None,
    ) -> Transaction:
        """A transaction that creates a table. The arguments are those of `Transaction.create`."""
        return transaction.Transaction.create(
            store,
            operation=operation,
            writer_kind=writer_kind,
            operation_parameters=operation_parameters,
            properties=self.commit,
            observer=self.observer,
            clock=self.clock,
            verified_at_ms=verified_at_ms,
        )


DEFAULT_RUN = Run()
"""The system's clock, threads of this process, no progress, and the default commit properties."""
