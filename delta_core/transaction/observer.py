"""Hooks into the phases of a commit: no-ops in production, barriers and crash points in tests."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class CommitPhase(StrEnum):
    """The phases, in order; PUT and REBASE phases repeat with each attempt."""

    PREPARED = "prepared"
    BEFORE_PUT = "before_put"
    AFTER_PUT = "after_put"
    LOST = "lost"
    REBASED = "rebased"
    COMMITTED = "committed"


class TransactionObserver(Protocol):
    """Is called at each phase of a commit. An exception that it raises ends the commit like a crash."""

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        """Observe a phase. `version` is the version being tried, or the version that another writer won."""
        ...


class NullObserver:
    """Ignores every phase."""

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        """Do nothing."""
        return None


NULL_OBSERVER = NullObserver()
