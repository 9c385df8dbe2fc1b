"""Hooks into a commit's phases: a no-op in production, barriers and crash points in tests."""

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
    """Sees each phase of a commit. What it raises ends the commit, as a crash would."""

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        """Called at a phase; `version` is the version being tried, or the one that was lost."""
        ...


class NullObserver:
    """Ignores every phase."""

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        """Do nothing."""
        return None


NULL_OBSERVER = NullObserver()
