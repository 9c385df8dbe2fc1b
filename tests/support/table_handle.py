"""An open table over any store, so that a misbehaving one can be put below a write."""

from __future__ import annotations

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties


class StoreTable:
    """What `write_deltalake` needs of an open table."""

    def __init__(self, store: LogStore, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.store = store
        self.clock = clock
        self.snapshot = Snapshot.load(store, clock=clock)
        self.verified_at_ms = clock.now_ms()

    def adopt_newest(self) -> None:
        self.adopt(self.snapshot.refresh())

    def adopt(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.verified_at_ms = self.clock.now_ms()

    def new_run(self, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES) -> Run:
        return Run(clock=self.clock, commit=commit_properties)
