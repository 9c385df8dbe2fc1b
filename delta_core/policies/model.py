"""The model of a policy file. Each section is optional; missing settings come from the level below."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from delta_core.maintenance.observe import MaintenanceRules
from delta_core.policies.fleet_model import Bytes, FleetSection, FleetSettings, Section, as_tuple
from delta_core.table_features.table_properties import parse_bytes


def _bytes(value: object) -> object:
    return parse_bytes(value) if isinstance(value, str) else value


class CompactionPolicy(Section):
    """When and how small files are compacted."""

    enabled: bool = True
    target_size_bytes: Bytes | None = None
    min_small_files: Annotated[int, Field(ge=1)] = 16


class CheckpointPolicy(Section):
    """When a checkpoint is written. Without an interval, the table's interval applies."""

    enabled: bool = True
    interval: Annotated[int, Field(ge=1)] | None = None


class VacuumPolicy(Section):
    """When unneeded files are deleted, and whether the deletion is only planned."""

    enabled: bool = True
    retention_hours: Annotated[float, Field(ge=0)] | None = None
    dry_run: bool = True
    min_bytes: Annotated[int, BeforeValidator(_bytes, json_schema_input_type=int | str), Field(ge=0)] = (
        64 << 20
    )
    max_age_hours: Annotated[float, Field(gt=0)] = 168.0


class ClusteringPolicy(Section):
    """The columns to Z-order rows by, and the share of new bytes from which the order is renewed.

    A table with clustering columns is clustered by its clustering columns instead.
    """

    enabled: bool = True
    columns: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(as_tuple)] = ()
    min_new_fraction: Annotated[float, Field(ge=0, le=1)] = 0.2


class MaintenancePolicy(FleetSettings):
    """The settings of a table, of a pattern, or of the defaults."""

    compaction: CompactionPolicy = CompactionPolicy()
    checkpoint: CheckpointPolicy = CheckpointPolicy()
    vacuum: VacuumPolicy = VacuumPolicy()
    clustering: ClusteringPolicy = ClusteringPolicy()

    def rules(self) -> MaintenanceRules:
        """The policy in the form of a `plan` job's parameter."""
        return MaintenanceRules(
            compaction_enabled=self.compaction.enabled,
            compaction_min_small_files=self.compaction.min_small_files,
            compaction_target_size_bytes=self.compaction.target_size_bytes,
            checkpoint_enabled=self.checkpoint.enabled,
            checkpoint_interval=self.checkpoint.interval,
            vacuum_enabled=self.vacuum.enabled,
            vacuum_retention_hours=self.vacuum.retention_hours,
            vacuum_min_bytes=self.vacuum.min_bytes,
            vacuum_max_age_hours=self.vacuum.max_age_hours,
            cluster_enabled=self.clustering.enabled,
            cluster_columns=self.clustering.columns if self.clustering.enabled else (),
            cluster_min_new_fraction=self.clustering.min_new_fraction,
        )


class PatternPolicy(MaintenancePolicy):
    """Settings for every table whose name or URI matches a shell pattern."""

    match: Annotated[str, Field(min_length=1)]


class TablePolicy(MaintenancePolicy):
    """Settings for one table."""

    uri: Annotated[str, Field(min_length=1)]


class PolicyFile(Section):
    """The whole file: `defaults`, then `patterns` in order, then `tables` by name, and the `fleet`."""

    defaults: MaintenancePolicy = MaintenancePolicy()
    patterns: tuple[PatternPolicy, ...] = ()
    tables: dict[str, TablePolicy] = {}  # noqa: RUF012 - a model copies its defaults
    fleet: FleetSection = FleetSection()
