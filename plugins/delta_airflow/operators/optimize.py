"""Compaction of small files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import as_optional_int, as_optional_text


class DeltaOptimizeOperator(DeltaTableOperator):
    """Compacts a table's small files. Readers see the same rows before and after.

    Args:
        predicate: on partition columns; only matching partitions are compacted (templated).
        target_size_bytes: size that files are packed to; None is the table's own setting (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (*DeltaTableOperator.template_fields, "predicate", "target_size_bytes")

    def __init__(
        self, *, predicate: str | None = None, target_size_bytes: int | str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.predicate = predicate
        self.target_size_bytes = target_size_bytes

    def job_kind(self) -> str:
        return "optimize"

    def job_params(self) -> Mapping[str, Any]:
        params = {
            "predicate": as_optional_text("predicate", self.predicate),
            "target_size_bytes": as_optional_int("target_size_bytes", self.target_size_bytes, minimum=1),
        }
        return {name: value for name, value in params.items() if value is not None}
