"""Enabling row tracking on a table that has rows (PROTOCOL.md, "Row Tracking").

The first commit adds the feature to the protocol, so that every new file gets row ids. The next commits add
the live files without row ids again, with row ids and `dataChange=false`, some thousands of files in each
commit. When no such file is left, a last commit sets the property and checks that this still holds. Each step
starts from the state of the table, so a caller that was stopped half way calls again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from delta_core.actions import Action
from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.dml.post_commit import commit_or_raise
from delta_core.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConcurrentWriteError,
    ConfigurationError,
)
from delta_core.maintenance.backfill.files import files_without_row_ids, lacks_row_ids
from delta_core.maintenance.row_counts import uncounted_paths
from delta_core.run import DEFAULT_RUN, Run
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.automatic_properties import automatic_properties
from delta_core.table_features.enablement import protocol_for, refuse_unsupported_definition
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.table_properties import ENABLE_ROW_TRACKING
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.row_ids import FEATURE, SUSPENDED, enables_row_tracking

FILES_PER_COMMIT: Final = 10_000
"""A commit with this many files takes some megabytes of log. A conflict repeats the work of one commit."""

_MOST_CONFLICTS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillResult:
    """The result of a backfill.

    Attributes:
        committed: the commit that enabled row tracking; None when row tracking was enabled before.
        files: number of files that got row ids.
        commits: number of commits that gave row ids to files.
    """

    committed: Committed | None
    files: int = 0
    commits: int = 0

    @property
    def version(self) -> int | None:
        """The version that enabled row tracking; None when row tracking was enabled before."""
        return None if self.committed is None else self.committed.version


def enable_row_tracking(
    snapshot: Snapshot, *, files_per_commit: int = FILES_PER_COMMIT, run: Run = DEFAULT_RUN
) -> BackfillResult:
    """Give row ids to the rows of a table and enable row tracking. Does nothing when it is enabled already.

    Other writers may continue: their new files get row ids of their own. A file that another writer removes
    during a commit is left out of the next attempt. The change data feed shows no change. Requests: one
    commit for the feature, one commit for each `files_per_commit` files, one commit for the property, and the
    list of live files before each commit. A file whose statistics have no row count is opened.

    Args:
        snapshot: any version of the table.
        files_per_commit: the most files that one commit adds again.
        run: the surroundings. Only the last commit carries the idempotency key.

    Raises:
        ConfigurationError: the number of files is not positive.
        UnsupportedTableFeatureError: the table requires a feature that this writer does not support, or this
            library does not write row tracking.
        ConcurrentModificationError: other writers won too often, or changed the table definition.
        MissingDataFileError, InvalidTableError: a file whose rows must be counted cannot be read.
        PathEscapeError: a file whose rows must be counted is neither in the table nor below an allowed root;
            nothing was committed.
    """
    return _Backfill(run=run).apply(snapshot, files_per_commit=files_per_commit, enables=True)


def assign_row_ids(
    snapshot: Snapshot, *, files_per_commit: int = FILES_PER_COMMIT, run: Run = DEFAULT_RUN
) -> BackfillResult:
    """Give row ids to the rows of a table without enabling row tracking.

    Afterwards the table supports row tracking and every row has an id. This is `enable_row_tracking` without
    its last commit, for callers that enable row tracking together with another change. The idempotency key of
    `run` is not used. Arguments and errors are those of `enable_row_tracking`.
    """
    return _Backfill(run=run).apply(snapshot, files_per_commit=files_per_commit, enables=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Backfill:
    """The commits of one backfill."""

    run: Run

    def apply(self, snapshot: Snapshot, *, files_per_commit: int, enables: bool) -> BackfillResult:
        """Make all commits. A commit that conflicts with another writer is tried again."""
        if files_per_commit < 1:
            raise ConfigurationError(
                f"The number of files for each commit cannot be {files_per_commit}.",
                fix="Pass a whole number greater than 0.",
            )
        latest = snapshot.refresh()
        latest.require_writable(writer_kind=WriterKind.REWRITE, operation="give row ids to the table's rows")
        if enables_row_tracking(latest.metadata):
            return BackfillResult(committed=None)
        self.require_allowed_paths(latest)
        latest = self.support(latest)
        files = commits = conflicts = 0
        while True:
            try:
                if adds := files_without_row_ids(latest, limit=files_per_commit, access=self.run.access):
                    self.commit(latest, *adds, operation="ROW TRACKING BACKFILL", parameters={}, last=False)
                    files, commits = files + len(adds), commits + 1
                else:
                    committed = self.enable(latest) if enables else None
                    return BackfillResult(committed=committed, files=files, commits=commits)
            except (ConcurrentDeleteReadError, ConcurrentAppendError, ConcurrentWriteError):
                # ConcurrentWriteError: a vacuum began. It deletes no file that is live after its start.
                conflicts += 1
                if conflicts > _MOST_CONFLICTS:
                    raise
            latest = latest.refresh()

    def require_allowed_paths(self, latest: Snapshot) -> None:
        """Check, before the first commit, that every file that must be opened may be opened."""
        files = latest.files.to_table(LIVE_FILE_SCHEMA.names)
        unnumbered = files.filter(lacks_row_ids(files))
        self.run.access.require_allowed_paths(uncounted_paths(unnumbered), store=latest.store)

    def support(self, latest: Snapshot) -> Snapshot:
        """Add the feature to the protocol and remove its suspension; returns the resulting version."""
        configuration = {**latest.metadata.configuration, ENABLE_ROW_TRACKING.key: "true"}
        schema = schema_from_json(latest.metadata.schema_string)
        # `require_writable` has checked the rest of the table definition.
        refuse_unsupported_definition(StructType(()), {ENABLE_ROW_TRACKING.key: "true"})
        protocol = protocol_for(schema, configuration, current=latest.protocol)
        actions: list[Action] = [] if protocol == latest.protocol else [protocol]
        remaining = {key: value for key, value in latest.metadata.configuration.items() if key != SUSPENDED}
        if len(remaining) < len(latest.metadata.configuration):
            actions.append(replace(latest.metadata, configuration=remaining))
        if not actions:
            return latest
        self.commit(latest, *actions, operation="ADD FEATURE", parameters={"feature": FEATURE}, last=False)
        return latest.refresh()

    def enable(self, latest: Snapshot) -> Committed:
        """Set the property that declares that every row has an id."""
        configuration = {**latest.metadata.configuration, ENABLE_ROW_TRACKING.key: "true"}
        configuration |= automatic_properties({FEATURE}, configuration, is_new=False)
        changed = {k: v for k, v in configuration.items() if latest.metadata.configuration.get(k) != v}
        metadata = replace(latest.metadata, configuration=configuration)
        return self.commit(
            latest, metadata, operation="SET TBLPROPERTIES", parameters={"properties": changed}, last=True
        )

    def commit(
        self,
        latest: Snapshot,
        *actions: Action,
        operation: str,
        parameters: dict[str, object],
        last: bool,
    ) -> Committed:
        """Make one commit; only the last one carries the idempotency key."""
        run = self.run if last else self.run.without_key()
        transaction = run.begin(
            latest,
            operation=operation,
            writer_kind=WriterKind.REWRITE,
            operation_parameters=parameters,
        )
        return commit_or_raise(transaction.add(*actions), run.progress)
