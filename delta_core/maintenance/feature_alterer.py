"""The `alter` part of an open table, with what takes more than the definition: dropping a feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delta_core.boundary import public_class
from delta_core.dml.arguments import require_string
from delta_core.dml.table_alterer import TableAlterer
from delta_core.dml.write import TableHandle
from delta_core.execution.executor import Executor
from delta_core.maintenance.feature_drop.apply import drop_feature
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import Committed


@public_class
class FeatureAlterer(TableAlterer):
    """Changes to a table's definition, and dropping the features that it needs no more."""

    def __init__(
        self,
        table: TableHandle,
        *,
        number_rows: Callable[[CommitProperties], object] | None = None,
        allowed_roots: Sequence[LogStore] = (),
    ) -> None:
        """Prepare; no request. `allowed_roots` as in `Scan`, the others as in `TableAlterer`."""
        super().__init__(table, number_rows=number_rows)
        self._allowed_roots = allowed_roots

    def drop_feature(
        self,
        name: str,
        *,
        truncate_history: bool = False,
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Take a table feature out of the table, so that clients that do not know it can use the table.

        Several commits, none of which changes a row; stopped half way, it goes on when it is called again.
        Where older versions use a feature of readers, the table gets `checkpointProtection`, and these
        versions stay; or, with `truncate_history`, they are deleted once
        `delta.dropFeatureTruncateHistory.retentionDuration` has passed: a call before that takes away what
        uses the feature, and raises.

        Args:
            name: the feature's, in any case.
            truncate_history: delete older versions that use the feature.
            executor: maps the rewriting of files; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commits.

        Raises:
            FeatureRemovalError: the feature cannot be dropped, or not yet; says why, and what to do.
            ConfigurationError: the feature leaves no history to truncate.
            UnsupportedTableFeatureError: the table needs something that this writer does not do.
            ConcurrentModificationError, MaxCommitAttemptsError: other writers came in between time and again.
            PathEscapeError: a file that has to be opened, such as one that a shallow clone shares with its
                source, is outside the table and the roots that the handle allows; nothing was committed.
        """
        name = require_string(name, what="name of a feature")
        return self._adopt(
            drop_feature(
                self._current(),
                name,
                truncate_history=truncate_history,
                allowed_roots=self._allowed_roots,
                properties=commit_properties,
                executor=executor,
            )
        )
