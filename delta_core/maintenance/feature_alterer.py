"""The `alter` namespace of an open table, with the removal of table features."""

from __future__ import annotations

from delta_core.arguments import require_string
from delta_core.boundary import public_class
from delta_core.dml.table_alterer import TableAlterer
from delta_core.execution.executor import Executor
from delta_core.maintenance.feature_drop.apply import drop_feature
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import Committed


@public_class
class FeatureAlterer(TableAlterer):
    """Changes to the table definition, and the removal of table features."""

    def drop_feature(
        self,
        name: str,
        *,
        truncate_history: bool = False,
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Drop a table feature, so that clients that do not support the feature can use the table.

        Makes several commits, none of which changes a row. After an interruption, a second call continues.
        When older versions use a reader feature, those versions stay and the table gets the feature
        `checkpointProtection`. With `truncate_history`, those versions are deleted instead, once
        `delta.dropFeatureTruncateHistory.retentionDuration` has passed. A call before that time removes the
        uses of the feature from the newest version, and raises.

        Args:
            name: the feature's name, in any case.
            truncate_history: delete older versions that use the feature.
            executor: runs the tasks that rewrite files; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commits.

        Raises:
            FeatureRemovalError: the feature cannot be dropped, or not yet; the error has the cause and a fix.
            ConfigurationError: the feature leaves no history to truncate.
            UnsupportedTableFeatureError: the table requires a feature that this writer does not support.
            ConcurrentModificationError, MaxCommitAttemptsError: other writers won too often.
            PathEscapeError: a file that must be opened, such as one that a shallow clone shares with its
                source, is outside the table and the roots that the handle allows; nothing was committed.
        """
        name = require_string(name, what="name of a feature")
        return self._adopt(
            drop_feature(
                self._current(),
                name,
                truncate_history=truncate_history,
                run=self._run(commit_properties, executor),
            )
        )
