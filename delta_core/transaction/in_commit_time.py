"""The time of a commit, in the commit (PROTOCOL.md, "In-Commit Timestamps").

The time is that of the attempt, or one millisecond after the previous commit's time where clocks disagree. So
it depends on the version that is tried. The commit that enables the feature records its own version and time
in its metadata. For earlier versions readers use file times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from delta_core.actions import Action, Metadata, Protocol
from delta_core.errors import CommitError
from delta_core.log.log_path import commit_path
from delta_core.snapshot.commit_time import ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import writer_features
from delta_core.table_features.table_properties import ENABLE_IN_COMMIT_TIMESTAMPS
from delta_core.transaction.rebase import CommitDraft
from delta_core.transaction.winning_commit import WinningCommit

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot

FEATURE = "inCommitTimestamp"
ENABLEMENT_PROPERTIES = (ENABLEMENT_VERSION.key, ENABLEMENT_TIMESTAMP.key)
"""The properties that record from which version and time on commits have in-commit timestamps.

Only the commit that enables the feature can determine their values.
"""

_MAX_LONG = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InCommitTime:
    """The rebase hook that sets the in-commit timestamp of a commit.

    Attributes:
        store: the table's store. The commit that enables the feature reads a file's time from it after
            another writer has won.
        before_ms: the time that the commit's time must exceed; None for version 0.
        last_version: the version that has the time `before_ms`.
        enables: True for a commit that enables the feature on an existing table.
    """

    store: LogStore
    before_ms: int | None
    last_version: int
    enables: bool = False

    @property
    def domains(self) -> frozenset[str]:
        """No domains: this hook merges none."""
        return frozenset()

    def apply(self, draft: CommitDraft, version: int) -> CommitDraft:
        """See `RebaseHook`. One request when the commit enables the feature after a winner, else none.

        Raises:
            CommitError: the previous commit has the largest time that can be stored.
            StorageError: the time of the previous commit could not be read.
        """
        time_ms = draft.info.timestamp_ms or 0
        if self.before_ms is not None:
            time_ms = max(time_ms, self.before_ms + 1)
        if self.enables and version - 1 != self.last_version:
            # The winning commit has no in-commit timestamp, so the time of its file is used.
            time_ms = max(time_ms, self.store.head(commit_path(version - 1)).modified_ms + 1)
        if time_ms > _MAX_LONG:
            raise CommitError(
                "The table cannot take another commit, because its in-commit timestamp would be too large.",
                cause=f"The commit before version {version} has the timestamp {self.before_ms} ms.",
                fix="Disable in-commit timestamps, and enable them again in a later commit.",
            )
        actions = draft.actions
        if self.enables:
            actions = [
                with_enablement(action, version=version, time_ms=time_ms)
                if isinstance(action, Metadata)
                else action
                for action in actions
            ]
        return CommitDraft(info=replace(draft.info, in_commit_timestamp_ms=time_ms), actions=actions)

    def after(self, winner: WinningCommit) -> InCommitTime:
        """See `RebaseHook`."""
        time_ms = None if winner.commit_info is None else winner.commit_info.in_commit_timestamp_ms
        if self.enables or time_ms is None:
            return self
        before_ms = time_ms if self.before_ms is None else max(time_ms, self.before_ms)
        return replace(self, before_ms=before_ms, last_version=winner.version)


def has_in_commit_times(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether the commits of a table with this definition have in-commit timestamps."""
    if FEATURE not in writer_features(protocol):
        return False
    value = metadata.configuration.get(ENABLE_IN_COMMIT_TIMESTAMPS.key, "")
    return value.strip().lower() == "true"


def begin_in_commit_times(base: Snapshot | None, protocol: Protocol, metadata: Metadata) -> bool:
    """Whether this table definition enables in-commit timestamps that `base` did not have."""
    had = base is not None and has_in_commit_times(base.protocol, base.metadata)
    return has_in_commit_times(protocol, metadata) and not had


def in_commit_time(base: Snapshot | None, store: LogStore, *, active: bool) -> InCommitTime | None:
    """The rebase hook of a commit, or None. At most one request, when the time of `base` is not known.

    Args:
        base: the version that the commit follows; None for a table that is created.
        store: the table's store.
        active: whether the table has in-commit timestamps after the commit.

    Raises:
        StorageError: the time of `base` could not be read.
    """
    if not active:
        return None
    if base is None:
        return InCommitTime(store=store, before_ms=None, last_version=-1)
    return InCommitTime(
        store=store,
        before_ms=base.timestamp_ms,
        last_version=base.version,
        enables=not has_in_commit_times(base.protocol, base.metadata),
    )


def with_enablement_properties(base: Snapshot | None, protocol: Protocol, metadata: Metadata) -> Metadata:
    """The staged metadata with correct enablement properties, whatever values were staged.

    While the feature stays enabled the properties keep the table's values, so that a restore does not bring
    older values back. Where the commit enables the feature, the rebase hook sets them, except in version 0,
    which needs none. Where the commit disables the feature, they are removed. Metadata of a table that never
    had the feature is returned unchanged.
    """
    had = base is not None and has_in_commit_times(base.protocol, base.metadata)
    if not had and not has_in_commit_times(protocol, metadata):
        return metadata
    recorded = base.metadata.configuration if base is not None and had else {}
    if not has_in_commit_times(protocol, metadata):
        recorded = {}
    configuration = {
        key: value for key, value in metadata.configuration.items() if key not in ENABLEMENT_PROPERTIES
    }
    configuration |= {key: recorded[key] for key in ENABLEMENT_PROPERTIES if key in recorded}
    if configuration == metadata.configuration:
        return metadata
    return replace(metadata, configuration=configuration)


def with_enablement(metadata: Metadata, *, version: int, time_ms: int) -> Action:
    """The metadata of the commit that enables the feature, with its version and time."""
    enablement = {ENABLEMENT_VERSION.key: str(version), ENABLEMENT_TIMESTAMP.key: str(time_ms)}
    return replace(metadata, configuration={**metadata.configuration, **enablement})
