"""What the steps of a drop share: how they commit, and how they say what they did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from delta_core.actions import Action, Metadata
from delta_core.checkpoint.write import write_checkpoint
from delta_core.clock import Clock
from delta_core.execution.executor import Executor
from delta_core.execution.reporter import SILENT
from delta_core.maintenance.commit import commit_with_events
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import Committed, raise_for_result
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.observer import TransactionObserver
from delta_core.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One drop.

    Attributes:
        feature: its name, in the protocol's spelling.
        access: where besides the table its files may be.
        properties: of the commits; the idempotency key goes with the last.
        executor: maps the rewriting of files; threads of this process when None.
        observer: sees each phase of the commits.
        clock: where time comes from.
    """

    feature: str
    access: DataAccess
    properties: CommitProperties
    executor: Executor | None
    observer: TransactionObserver
    clock: Clock

    @property
    def without_key(self) -> CommitProperties:
        """The properties of every commit but the last."""
        return self.properties.without_key()

    def commit(
        self,
        latest: Snapshot,
        *actions: Action,
        operation: str,
        parameters: Mapping[str, Any],
        only_next: bool = False,
        last: bool = False,
    ) -> Committed:
        """Commit actions.

        Args:
            latest: the version that they follow from.
            actions: what is committed, perhaps nothing.
            operation: its name in the history.
            parameters: its parameters there.
            only_next: only as the version right after that one: what anybody commits meanwhile may need the
                feature, whether it adds rows or not, and has to be looked at.
            last: whether it is the commit that the idempotency key goes with.

        Raises:
            CommitError: by kind; with `only_next` MaxCommitAttemptsError or a conflict where another writer
                was first.
        """
        properties = self.properties if last else self.without_key
        transaction = Transaction.begin(
            latest,
            operation=operation,
            writer_kind=WriterKind.REWRITE,
            operation_parameters=parameters,
            properties=replace(properties, max_attempts=1) if only_next else properties,
            isolation=IsolationLevel.SERIALIZABLE if only_next else None,
            observer=self.observer,
            clock=self.clock,
        )
        if only_next:
            transaction.read_predicate(None)
        return raise_for_result(commit_with_events(transaction.add(*actions), SILENT))

    def configure(self, latest: Snapshot, changes: Mapping[str, str | None]) -> Snapshot:
        """The table with other properties, None being "not set"; no commit where they are so.

        Raises:
            CommitError: by kind.
        """
        before = latest.metadata.configuration
        changed = {key: value for key, value in changes.items() if before.get(key) != value}
        if not changed:
            return latest
        wanted = {key: value for key, value in before.items() if key not in changed}
        wanted |= {key: value for key, value in changed.items() if value is not None}
        metadata: Metadata = replace(latest.metadata, configuration=wanted)
        given = {key: value for key, value in changed.items() if value is not None}
        parameters: dict[str, Any] = {"properties": given or sorted(changed)}
        if not given:
            parameters["ifExists"] = True
        operation = "SET TBLPROPERTIES" if given else "UNSET TBLPROPERTIES"
        self.commit(latest, metadata, operation=operation, parameters=parameters)
        return latest.refresh()

    def nothing(self, latest: Snapshot) -> Snapshot:
        """The table after a commit that changes nothing.

        Raises:
            CommitError: by kind.
        """
        self.commit(latest, operation="Empty Commit", parameters={})
        return latest.refresh()


def checkpointed(latest: Snapshot) -> Snapshot:
    """The same version, read from a checkpoint of its own.

    Raises:
        VerificationError, StaleCommitError, StorageError: there is none that can be relied on.
    """
    write_checkpoint(latest)
    return Snapshot.load(latest.store, version=latest.version, clock=latest.clock)
