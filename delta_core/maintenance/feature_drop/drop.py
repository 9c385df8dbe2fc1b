"""The settings and the commit functions that the steps of a drop share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from delta_core.actions import Action, Metadata
from delta_core.checkpoint.write import write_checkpoint
from delta_core.dml.post_commit import commit_or_raise
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.isolation import IsolationLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """The drop of one table feature.

    Attributes:
        feature: the feature's name, in the protocol's spelling.
        last: the surroundings of the last commit, which carries the idempotency key.
    """

    feature: str
    last: Run

    @property
    def run(self) -> Run:
        """The surroundings of every commit except the last."""
        return self.last.without_key()

    def commit(
        self,
        latest: Snapshot,
        *actions: Action,
        operation: str,
        parameters: Mapping[str, Any],
        only_next: bool = False,
        last: bool = False,
    ) -> Committed:
        """Make one commit of the drop.

        Args:
            latest: the version that the actions are based on.
            actions: the actions to commit; may be empty.
            operation: the operation's name in the history.
            parameters: the operation's parameters in the history.
            only_next: commit only as the version directly after `latest`. Any other commit, even one without
                rows, may use the feature and must be checked first.
            last: whether this commit carries the idempotency key.

        Raises:
            CommitError: the commit failed; with `only_next` MaxCommitAttemptsError or a conflict when another
                writer won.
        """
        run = self.last if last else self.run
        transaction = (run.only_next() if only_next else run).begin(
            latest,
            operation=operation,
            writer_kind=WriterKind.REWRITE,
            operation_parameters=parameters,
            isolation=IsolationLevel.SERIALIZABLE if only_next else None,
        )
        if only_next:
            transaction.read_predicate(None)
        return commit_or_raise(transaction.add(*actions), run.progress)

    def configure(self, latest: Snapshot, changes: Mapping[str, str | None]) -> Snapshot:
        """Set table properties, or unset those with the value None. No commit when nothing changes.

        Raises:
            CommitError: the commit failed.
        """
        before = latest.metadata.configuration
        changed = {key: value for key, value in changes.items() if before.get(key) != value}
        if not changed:
            return latest
        configuration = {key: value for key, value in before.items() if key not in changed}
        configuration |= {key: value for key, value in changed.items() if value is not None}
        metadata: Metadata = replace(latest.metadata, configuration=configuration)
        assigned = {key: value for key, value in changed.items() if value is not None}
        parameters: dict[str, Any] = {"properties": assigned or sorted(changed)}
        if not assigned:
            parameters["ifExists"] = True
        operation = "SET TBLPROPERTIES" if assigned else "UNSET TBLPROPERTIES"
        self.commit(latest, metadata, operation=operation, parameters=parameters)
        return latest.refresh()

    def empty_commit(self, latest: Snapshot) -> Snapshot:
        """Make a commit without actions; returns the new version.

        Raises:
            CommitError: the commit failed.
        """
        self.commit(latest, operation="Empty Commit", parameters={})
        return latest.refresh()


def checkpointed(latest: Snapshot) -> Snapshot:
    """Write a checkpoint of the version, and load the version from the checkpoint.

    Raises:
        VerificationError, StaleCommitError, StorageError: no reliable checkpoint could be written.
    """
    write_checkpoint(latest)
    return Snapshot.load(latest.store, version=latest.version, clock=latest.clock)
