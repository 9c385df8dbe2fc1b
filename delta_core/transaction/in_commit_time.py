"""The time of a commit, in the commit (PROTOCOL.md, "In-Commit Timestamps").

It is the time of the attempt, or one millisecond after the commit before where clocks disagree, so it is
known only for a version. The commit that turns the feature on says in its own metadata which version it is
and of what time: readers go by file times before it.
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
PROVENANCE = (ENABLEMENT_VERSION.key, ENABLEMENT_TIMESTAMP.key)
"""The properties that say since when commits carry their time; only the commit itself knows them."""

_MAX_LONG = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InCommitTime:
    """Puts a commit's time into it.

    Attributes:
        store: the table's store; asked for a file's time by the commit that turns the feature on, where
            others won before it.
        before_ms: the time that the commit's must exceed; None for version 0.
        last_version: the version whose time that is.
        enables: True for the commit that turns the feature on, on a table that has commits.
    """

    store: LogStore
    before_ms: int | None
    last_version: int
    enables: bool = False

    @property
    def domains(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def stamp(self, draft: CommitDraft, version: int) -> CommitDraft:
        """See `RebaseHook`. One request in the commit that turns the feature on after others won, else none.

        Raises:
            CommitError: the commit before says a time that none can follow.
            StorageError: the time of the commit before could not be read.
        """
        time_ms = draft.info.timestamp_ms or 0
        if self.before_ms is not None:
            time_ms = max(time_ms, self.before_ms + 1)
        if self.enables and version - 1 != self.last_version:
            # Whoever won had no time of its own to go by.
            time_ms = max(time_ms, self.store.head(commit_path(version - 1)).modified_ms + 1)
        if time_ms > _MAX_LONG:
            raise CommitError(
                "No commit can follow: its time would be too large.",
                cause=f"The commit before version {version} is of the time {self.before_ms} ms.",
                fix="Turn in-commit timestamps off, and on again in a later commit.",
            )
        actions = draft.actions
        if self.enables:
            actions = [
                with_provenance(action, version=version, time_ms=time_ms)
                if isinstance(action, Metadata)
                else action
                for action in actions
            ]
        return CommitDraft(info=replace(draft.info, in_commit_timestamp_ms=time_ms), actions=actions)

    def after(self, winner: WinningCommit) -> InCommitTime:
        """See `RebaseHook`."""
        own = None if winner.commit_info is None else winner.commit_info.in_commit_timestamp_ms
        if self.enables or own is None:
            return self
        before_ms = own if self.before_ms is None else max(own, self.before_ms)
        return replace(self, before_ms=before_ms, last_version=winner.version)


def has_in_commit_times(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether commits of such a table carry their time."""
    if FEATURE not in writer_features(protocol):
        return False
    text = metadata.configuration.get(ENABLE_IN_COMMIT_TIMESTAMPS.key, "")
    return text.strip().lower() == "true"


def begin_in_commit_times(base: Snapshot | None, protocol: Protocol, metadata: Metadata) -> bool:
    """Whether commits of a table carry their time from now on, and did not before."""
    was = base is not None and has_in_commit_times(base.protocol, base.metadata)
    return has_in_commit_times(protocol, metadata) and not was


def in_commit_time(base: Snapshot | None, store: LogStore, *, active: bool) -> InCommitTime | None:
    """The stamper of a commit, or None. At most one request, where the time of the version read is not known.

    Args:
        base: the version that the commit follows; None creates the table.
        store: the table's store.
        active: whether the table has in-commit timestamps as the commit leaves it.

    Raises:
        StorageError: the time of the version could not be read.
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


def settled_provenance(base: Snapshot | None, protocol: Protocol, metadata: Metadata) -> Metadata:
    """Staged metadata that says since when commits carry their time as it is, whatever was staged.

    While the feature stays on, that is what the table says already: a restore must not bring an older answer
    back. Where it is turned on the stamper fills it in, except in version 0, which needs none; where it is
    turned off nothing is said. A table that never had it is not touched.
    """
    was = base is not None and has_in_commit_times(base.protocol, base.metadata)
    if not was and not has_in_commit_times(protocol, metadata):
        return metadata
    said = base.metadata.configuration if base is not None and was else {}
    if not has_in_commit_times(protocol, metadata):
        said = {}
    configuration = {key: value for key, value in metadata.configuration.items() if key not in PROVENANCE}
    configuration |= {key: said[key] for key in PROVENANCE if key in said}
    if configuration == metadata.configuration:
        return metadata
    return replace(metadata, configuration=configuration)


def with_provenance(metadata: Metadata, *, version: int, time_ms: int) -> Action:
    """The metadata of the commit that turns the feature on."""
    said = {ENABLEMENT_VERSION.key: str(version), ENABLEMENT_TIMESTAMP.key: str(time_ms)}
    return replace(metadata, configuration={**metadata.configuration, **said})
