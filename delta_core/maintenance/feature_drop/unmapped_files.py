"""Removal of column mapping (PROTOCOL.md, "Column Mapping").

Without column mapping a reader finds columns in the files by their logical names. So every live file is
rewritten with the logical names, and the same commit removes the mapping from the metadata. No readable
version lies in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from delta_core.actions import Metadata
from delta_core.dml.definition.columns import table_columns, with_columns
from delta_core.errors import FeatureRemovalError
from delta_core.maintenance.compaction.bins import rewrite_bins
from delta_core.maintenance.compaction.plan import FILE_COLUMNS, pack_bins
from delta_core.maintenance.feature_drop.drop import Drop
from delta_core.maintenance.feature_drop.steps import repeat_until_done
from delta_core.maintenance.rewriting.rewrite import Operation
from delta_core.schema.column_mapping import MODE_KEY, ColumnMappingMode
from delta_core.schema.mapping_assignment import strip_mapping
from delta_core.schema.mapping_check import MAX_ID_KEY
from delta_core.schema.mapping_modes import remove_mapping
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.clustering_domain import DOMAIN, ClusteringColumns


def without_mapping(drop: Drop, latest: Snapshot) -> Snapshot:
    """Rewrite every file with the logical column names, and remove the mapping from the metadata.

    The whole table is rewritten. After a commit of another writer the rewrite starts again.

    Raises:
        FeatureRemovalError: the table is clustered, and the clustering columns are physical names.
        SchemaEvolutionError: a column has a name that only column mapping allows.
        InvalidTablePropertyError: Iceberg compatibility is enabled, which requires column mapping.
    """

    def step(now: Snapshot) -> bool:
        definition = _unmapped(drop, now)
        if definition == now.metadata:
            return False
        if now.column_mapping.mode is ColumnMappingMode.NONE:
            # The mode is `none`, and the metadata has unused entries of an earlier mapping.
            drop.commit(now, definition, operation="REMOVE COLUMN MAPPING", parameters={}, only_next=True)
            return True
        _rewrite(drop, now, definition)
        return True

    return repeat_until_done(latest, step)


def _unmapped(drop: Drop, snapshot: Snapshot) -> Metadata:
    columns = table_columns(snapshot)
    if columns.is_mapped:
        _refuse_clustered(drop, snapshot)
        return with_columns(snapshot.metadata, remove_mapping(columns))
    configuration = {k: v for k, v in columns.configuration.items() if k not in (MODE_KEY, MAX_ID_KEY)}
    stripped = replace(columns, schema=strip_mapping(columns.schema), configuration=configuration)
    if stripped == columns:
        return snapshot.metadata
    return with_columns(snapshot.metadata, stripped)


def _rewrite(drop: Drop, latest: Snapshot, definition: Metadata) -> None:
    operation = Operation(name="REMOVE COLUMN MAPPING", parameters={})
    files = latest.files.to_table(FILE_COLUMNS)
    names = _logical_names(latest)
    bins = tuple(
        replace(item, partition_values={names[name]: value for name, value in item.partition_values.items()})
        for item in pack_bins(files, latest, latest.properties.target_file_size_bytes, smallest_bin=1)
    )
    if not bins:
        drop.commit(latest, definition, operation=operation.name, parameters={}, only_next=True)
        return
    rewrite_bins(
        latest, bins, planned_version=latest.version, operation=operation, run=drop.run, definition=definition
    )


def _logical_names(snapshot: Snapshot) -> Mapping[str, str]:
    """The logical names of the partition columns, by their physical names."""
    fields = [field for field in snapshot.schema if field.name in snapshot.partition_columns]
    return {snapshot.column_mapping.physical_name(field): field.name for field in fields}


def _refuse_clustered(drop: Drop, snapshot: Snapshot) -> None:
    domain = snapshot.domain(DOMAIN)
    if domain is None or domain.removed or not ClusteringColumns.parse(domain.configuration).columns:
        return
    raise FeatureRemovalError(
        f"The table feature {drop.feature} cannot be dropped now.",
        cause="The table is clustered, and the clustering columns are recorded by their physical names.",
        fix="Drop the feature clustering first.",
    )
