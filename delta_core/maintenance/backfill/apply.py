"""Turning row tracking on for a table that has rows (PROTOCOL.md, "Row Tracking").

First the table supports the feature, so that every new file has numbers. Then the live files that have none
are added again with theirs, some thousands in each commit, changing no data. When none is left the property
says so, in a commit that checks it. Each step finds what the ones before it left, so whoever is stopped half
way just calls again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from delta_core.actions import Action
from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.dml.post_commit import commit_and_checkpoint
from delta_core.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConcurrentWriteError,
    ConfigurationError,
)
from delta_core.maintenance.backfill.files import is_unnumbered, unnumbered_files
from delta_core.maintenance.row_counts import uncounted_paths
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.table_features.automatic_properties import automatic_properties
from delta_core.table_features.enablement import protocol_for, refuse_unsupported_definition
from delta_core.table_features.table_properties import ENABLE_ROW_TRACKING
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import Committed, raise_for_result
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from delta_core.transaction.row_ids import FEATURE, SUSPENDED, enables_row_tracking
from delta_core.transaction.transaction import Transaction

FILES_PER_COMMIT: Final = 10_000
"""A commit of so many files is some megabytes of log, and what a conflict costs."""

_MOST_CONFLICTS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillResult:
    """What was done.

    Attributes:
        committed: the commit that turned row tracking on; None when it was on.
        files: files that got numbers.
        commits: in which they did.
    """

    committed: Committed | None
    files: int = 0
    commits: int = 0

    @property
    def version(self) -> int | None:
        """Since which version row tracking is on; None when it was on before."""
        return None if self.committed is None else self.committed.version


def enable_row_tracking(
    snapshot: Snapshot,
    *,
    files_per_commit: int = FILES_PER_COMMIT,
    allowed_roots: Sequence[LogStore] = (),
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> BackfillResult:
    """Number the rows of a table and turn row tracking on; nothing is done when it is.

    Other writers may go on: their new files get numbers of their own, and a file that one of them removes
    meanwhile is left out of another try. Readers of changes see nothing. Requests: one commit for the
    feature, one for each `files_per_commit` files, one for the property, and the list of live files before
    each; a file without a row count in its statistics is opened.

    Args:
        snapshot: any version of the table.
        files_per_commit: no commit adds more files again.
        allowed_roots: where absolute paths of the log may lead, for a shallow clone; see `Scan`.
        properties: provenance and limits of the commits; its idempotency key goes with the last one.
        observer: sees each phase of the commits.
        clock: where time comes from.

    Raises:
        ConfigurationError: the number of files is not positive.
        UnsupportedTableFeatureError: the table needs something that this writer does not do, or row tracking
            is not written by this library.
        ConcurrentModificationError: other writers came in between time and again, or changed the definition.
        MissingDataFileError, InvalidTableError: a file whose rows have to be counted cannot be read.
        PathEscapeError: such a file is neither in the table nor below an allowed root; nothing was committed.
    """
    access = DataAccess(allowed_roots=tuple(allowed_roots), clock=clock)
    backfill = _Backfill(access=access, properties=properties, observer=observer, clock=clock)
    return backfill.run(snapshot, files_per_commit=files_per_commit, enables=True)


def number_rows(
    snapshot: Snapshot,
    *,
    files_per_commit: int = FILES_PER_COMMIT,
    allowed_roots: Sequence[LogStore] = (),
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> BackfillResult:
    """The same without the last commit: the table supports row tracking, and every row of it has an id.

    For who turns it on together with something else. The idempotency key of `properties` is not used. Args
    and Raises as `enable_row_tracking`.
    """
    access = DataAccess(allowed_roots=tuple(allowed_roots), clock=clock)
    backfill = _Backfill(access=access, properties=properties, observer=observer, clock=clock)
    return backfill.run(snapshot, files_per_commit=files_per_commit, enables=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Backfill:
    """The commits."""

    access: DataAccess
    properties: CommitProperties
    observer: TransactionObserver
    clock: Clock

    def run(self, snapshot: Snapshot, *, files_per_commit: int, enables: bool) -> BackfillResult:
        """All of them, as often as other writers make it necessary."""
        if files_per_commit < 1:
            raise ConfigurationError(
                f"Files cannot be numbered {files_per_commit} at a time.",
                fix="Pass a whole number from 1 on.",
            )
        latest = snapshot.refresh()
        latest.require_writable(writer_kind=WriterKind.REWRITE, operation="number the table's rows")
        if enables_row_tracking(latest.metadata):
            return BackfillResult(committed=None)
        self.require_reach(latest)
        latest = self.support(latest)
        files = commits = conflicts = 0
        while True:
            try:
                if adds := unnumbered_files(latest, limit=files_per_commit, access=self.access):
                    self.commit(latest, *adds, operation="ROW TRACKING BACKFILL", parameters={}, last=False)
                    files, commits = files + len(adds), commits + 1
                else:
                    committed = self.enable(latest) if enables else None
                    return BackfillResult(committed=committed, files=files, commits=commits)
            except (ConcurrentDeleteReadError, ConcurrentAppendError, ConcurrentWriteError):
                # The last is a vacuum that began: what is live again after it, it has not deleted.
                conflicts += 1
                if conflicts > _MOST_CONFLICTS:
                    raise
            latest = latest.refresh()

    def require_reach(self, latest: Snapshot) -> None:
        """Before anything is committed: every file may be opened that will be."""
        files = latest.files.to_table(LIVE_FILE_SCHEMA.names)
        lacking = files.filter(is_unnumbered(files))
        self.access.require_reach(uncounted_paths(lacking), store=latest.store)

    def support(self, latest: Snapshot) -> Snapshot:
        """The table once it supports the feature and does not hold it up."""
        wanted = {**latest.metadata.configuration, ENABLE_ROW_TRACKING.key: "true"}
        schema = schema_from_json(latest.metadata.schema_string)
        # Of what the table has besides, `require_writable` has judged.
        refuse_unsupported_definition(StructType(()), {ENABLE_ROW_TRACKING.key: "true"})
        protocol = protocol_for(schema, wanted, current=latest.protocol)
        actions: list[Action] = [] if protocol == latest.protocol else [protocol]
        kept = {key: value for key, value in latest.metadata.configuration.items() if key != SUSPENDED}
        if len(kept) < len(latest.metadata.configuration):
            actions.append(replace(latest.metadata, configuration=kept))
        if not actions:
            return latest
        self.commit(latest, *actions, operation="ADD FEATURE", parameters={"feature": FEATURE}, last=False)
        return latest.refresh()

    def enable(self, latest: Snapshot) -> Committed:
        """Say that every row has an id."""
        wanted = {**latest.metadata.configuration, ENABLE_ROW_TRACKING.key: "true"}
        wanted |= automatic_properties({FEATURE}, wanted, is_new=False)
        given = {k: v for k, v in wanted.items() if latest.metadata.configuration.get(k) != v}
        metadata = replace(latest.metadata, configuration=wanted)
        return self.commit(
            latest, metadata, operation="SET TBLPROPERTIES", parameters={"properties": given}, last=True
        )

    def commit(
        self,
        latest: Snapshot,
        *actions: Action,
        operation: str,
        parameters: dict[str, object],
        last: bool,
    ) -> Committed:
        """One of the commits; the idempotency key goes with the last."""
        transaction = Transaction.begin(
            latest,
            operation=operation,
            writer_kind=WriterKind.REWRITE,
            operation_parameters=parameters,
            properties=self.properties if last else self.properties.without_key(),
            observer=self.observer,
            clock=self.clock,
        )
        return raise_for_result(commit_and_checkpoint(transaction.add(*actions)))
