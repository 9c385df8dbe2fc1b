"""The typed state of one run, as stored beside the run's specification and result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any


class RunPhase(StrEnum):
    """The phase of a run. `unknown`: the run ended, and its commit may or may not have succeeded."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


_NEXT: Mapping[RunPhase, frozenset[RunPhase]] = {
    RunPhase.PENDING: frozenset({RunPhase.RUNNING, RunPhase.FAILED, RunPhase.CANCELLED}),
    RunPhase.RUNNING: frozenset({RunPhase.SUCCEEDED, RunPhase.FAILED, RunPhase.CANCELLED, RunPhase.UNKNOWN}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The state of one run.

    Attributes:
        runner: the runner's name.
        process_group: the driver's process group on the worker; None for an inline run.
        last_event: the name of the latest progress event.
        error_code: `DeltaError.code` of the error if the run did not succeed.
    """

    job_id: str
    runner: str
    phase: RunPhase = RunPhase.PENDING
    started_ms: int | None = None
    finished_ms: int | None = None
    process_group: int | None = None
    last_event: str | None = None
    error_code: str | None = None

    @property
    def is_terminal(self) -> bool:
        """True when the run has ended."""
        return self.phase not in _NEXT

    @property
    def is_successful(self) -> bool:
        """True when the run has succeeded."""
        return self.phase is RunPhase.SUCCEEDED

    def advance(self, phase: RunPhase, **changes: Any) -> RunState:
        """The state after moving to `phase`.

        Raises:
            ValueError: no transition leads from the current phase to `phase`.
        """
        if phase not in _NEXT.get(self.phase, frozenset()):
            raise ValueError(f"a run that is {self.phase} cannot become {phase}")
        return replace(self, phase=phase, **changes)

    def to_json(self) -> dict[str, Any]:
        """The state as JSON values."""
        return {**asdict(self), "phase": self.phase.value}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RunState:
        """The state from the output of `to_json`. Unknown keys are ignored.

        Raises:
            ValueError: a field is missing or the phase is unknown.
        """
        known = {name: value[name] for name in cls.__slots__ if name in value}
        if "job_id" not in known or "runner" not in known:
            raise ValueError("a run state needs job_id and runner")
        return cls(**{**known, "phase": RunPhase(known.get("phase", RunPhase.PENDING))})
