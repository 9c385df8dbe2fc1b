"""Compaction of small files, and Z-order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import as_optional_float, as_optional_int, as_optional_text, as_texts


class DeltaOptimizeOperator(DeltaTableOperator):
    """Compacts a table's small files, or puts its rows in order. Readers see the same rows throughout.

    A table that has clustering columns is clustered by these.

    Args:
        predicate: on partition columns; only matching partitions are rewritten (templated).
        target_size_bytes: size of the new files; None is the table's own setting (templated).
        z_order_by: columns whose near values come into the same files; a list, or a template that renders
            as one. None or an empty list compacts, or clusters a clustered table (templated).
        min_new_fraction: for Z-order and clustering: a partition, or a clustered table, is left alone while a
            smaller share of its bytes is not in order yet (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "predicate",
        "target_size_bytes",
        "z_order_by",
        "min_new_fraction",
    )

    def __init__(
        self,
        *,
        predicate: str | None = None,
        target_size_bytes: int | str | None = None,
        z_order_by: Sequence[str] | str | None = None,
        min_new_fraction: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.predicate = predicate
        self.target_size_bytes = target_size_bytes
        self.z_order_by = z_order_by
        self.min_new_fraction = min_new_fraction

    def job_kind(self) -> str:
        return "optimize"

    def job_params(self) -> Mapping[str, Any]:
        params = {
            "predicate": as_optional_text("predicate", self.predicate),
            "target_size_bytes": as_optional_int("target_size_bytes", self.target_size_bytes, minimum=1),
            "z_order_by": self._columns() or None,
            "min_new_fraction": as_optional_float("min_new_fraction", self.min_new_fraction, minimum=0),
        }
        return {name: value for name, value in params.items() if value is not None}

    def _columns(self) -> list[str]:
        columns: Any = self.z_order_by
        if isinstance(columns, str):
            text = as_optional_text("z_order_by", columns)
            try:
                columns = None if text is None else json.loads(text.replace("'", '"'))
            except ValueError:
                # Not a rendered list; the check below says what is expected.
                columns = text
        return as_texts("z_order_by", columns)
