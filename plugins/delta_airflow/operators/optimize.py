"""Compaction of small files, and Z-order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_airflow.operators.planning import PlanningOperator
from delta_airflow.operators.rendered import (
    as_locations,
    as_optional_float,
    as_optional_int,
    as_optional_string,
    as_rendered_strings,
)


class DeltaOptimizeOperator(PlanningOperator):
    """Compacts a table's small files, or orders its rows. Readers see the same rows throughout.

    A table with clustering columns is clustered by these.

    Args:
        predicate: a predicate on partition columns; only matching partitions are rewritten (templated).
        target_size_bytes: size of the rewritten files; None uses the table's setting (templated).
        z_order_by: columns for Z-order, which puts rows with close values into the same files; a list, or a
            template that renders to a list. None or an empty list compacts, or clusters a clustered table
            (templated).
        min_new_fraction: for Z-order and clustering: a partition, or a clustered table, is skipped if less
            than this fraction of its bytes is not in order yet (templated).
        allowed_root_uris: locations outside the table's root where files of a shallow clone may be; a list,
            or a template that renders to a list. Files elsewhere are not rewritten (templated).
        dry_run: True only plans. The plan, with its files and bytes, is in the result (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *PlanningOperator.template_fields,
        "predicate",
        "target_size_bytes",
        "z_order_by",
        "min_new_fraction",
        "allowed_root_uris",
    )

    def __init__(
        self,
        *,
        predicate: str | None = None,
        target_size_bytes: int | str | None = None,
        z_order_by: Sequence[str] | str | None = None,
        min_new_fraction: float | str | None = None,
        allowed_root_uris: Sequence[str] | str | None = None,
        dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.predicate = predicate
        self.target_size_bytes = target_size_bytes
        self.z_order_by = z_order_by
        self.min_new_fraction = min_new_fraction
        self.allowed_root_uris = allowed_root_uris
        self.dry_run = dry_run

    def job_kind(self) -> str:
        return "optimize"

    def job_params(self) -> Mapping[str, Any]:
        params = {
            "predicate": as_optional_string("predicate", self.predicate),
            "target_size_bytes": as_optional_int("target_size_bytes", self.target_size_bytes, minimum=1),
            "z_order_by": as_rendered_strings("z_order_by", self.z_order_by) or None,
            "allowed_root_uris": as_locations("allowed_root_uris", self.allowed_root_uris) or None,
            "min_new_fraction": as_optional_float("min_new_fraction", self.min_new_fraction, minimum=0),
        }
        given = {name: value for name, value in params.items() if value is not None}
        return {**given, "dry_run": True} if self.plans_only() else given
