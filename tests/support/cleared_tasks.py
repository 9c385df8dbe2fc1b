"""Task instances as Airflow counts them when they are retried and cleared, without a scheduler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

RETRIES = 2


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One try of a task instance. `clear` and `retry` do what Airflow's own code does to the numbers."""

    run_id: str = "scheduled__2026-01-01"
    task_id: str = "t"
    try_number: int = 1
    max_tries: int = RETRIES
    retries: int = RETRIES

    def retry(self) -> Instance:
        """The next try, after a failure or a lost worker."""
        return replace(self, try_number=self.try_number + 1)

    def clear(self) -> Instance:
        """The first try after somebody cleared the task: see `clear_task_instances` in Airflow."""
        return replace(self, max_tries=self.try_number + self.retries, try_number=self.try_number + 1)

    @property
    def context(self) -> Any:
        """What a task's `execute` gets."""
        instance = SimpleNamespace(
            dag_id="d",
            task_id=self.task_id,
            run_id=self.run_id,
            map_index=-1,
            try_number=self.try_number,
            max_tries=self.max_tries,
            task=SimpleNamespace(retries=self.retries),
        )
        return {"ti": instance, "logical_date": None, "outlet_events": {}}
