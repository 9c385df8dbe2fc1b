"""Rewriting data files from before a column's type was widened (PROTOCOL.md, "Type Widening").

A reader without support for the feature requires the table's types in every file. Only the footers show which
files have narrower types. These files are rewritten. Then one commit removes the recorded type changes. That
commit must directly follow the version whose files were checked.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan
from delta_core.dml.definition.change import with_schema
from delta_core.errors import FeatureRemovalError
from delta_core.maintenance.feature_drop.drop import Drop
from delta_core.maintenance.feature_drop.steps import repeat_until_done, rewrite_files
from delta_core.maintenance.rewriting.reading import readable
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.type_changes import ENABLED_KEY, recorded_type_changes, without_type_changes
from delta_core.schema.types import TIMESTAMP_NTZ, StructField
from delta_core.snapshot.snapshot import Snapshot

_DATE = r"^[+-]?\d+-\d+-\d+$"


def without_widened_columns(drop: Drop, latest: Snapshot) -> Snapshot:
    """Rewrite files with narrower types, and remove the recorded type changes from the schema.

    Requests: two or three small reads for each live file, and those of rewriting the narrow files.

    Raises:
        FeatureRemovalError: a partition column was widened to a type that the log serializes differently.
        MissingDataFileError, InvalidTableError: a file's footer cannot be read.
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    _refuse_date_partitions(drop, latest)
    wide: set[str] = set()

    def step(now: Snapshot) -> bool:
        if drop.configure(now, {ENABLED_KEY: None}) is not now:
            return True
        changed = _changed_columns(now)
        if not changed:
            return False
        narrow = list(_narrow_files(drop, now, changed, wide))
        if narrow:
            wide.update(rewrite_files(drop, now, narrow))
            return True
        _refuse_date_partitions(drop, now)  # A restore may have restored such values.
        drop.commit(
            now,
            with_schema(now, without_type_changes(now.schema)),
            operation="CHANGE COLUMNS",
            parameters={"columns": sorted(field.name for field in changed), "typeChanges": None},
            only_next=True,
        )
        return True

    return repeat_until_done(latest, step)


def _changed_columns(snapshot: Snapshot) -> list[StructField]:
    """The top-level columns with a type change at any depth."""
    names = {change.path[0] for change in recorded_type_changes(snapshot.schema)}
    return [field for field in snapshot.schema if field.name in names]


def _narrow_files(
    drop: Drop, snapshot: Snapshot, changed: list[StructField], wide: set[str]
) -> Iterator[str]:
    """Live files in which a column does not have the table's type; adds the paths of the rest to `wide`."""
    plan = WritePlan.of(snapshot.protocol, snapshot.metadata)
    fields = {
        plan.mapping.physical_name(field): field
        for field in changed
        if field.name not in plan.partition_columns
    }
    types = {item.name: item.type for item in PhysicalStep(plan).file_schema if item.name in fields}
    columns = [(fields[name], kind) for name, kind in types.items()]
    access = drop.run.access
    for batch in snapshot.files.batches(["path"]):
        for path in batch.column("path").to_pylist():
            if path in wide:
                continue
            with readable(path), access.open_logged(path, store=snapshot.store) as source:
                schema = pq.read_schema(source)
            if _fits(schema, plan.mapping, columns):
                wide.add(path)
            else:
                yield path


def _fits(schema: pa.Schema, mapping: ColumnMapping, columns: list[tuple[StructField, pa.DataType]]) -> bool:
    in_file = mapping.in_file(schema)
    for field, kind in columns:
        column = in_file.column(field)
        if column is not None and schema.field(column.name).type != kind:
            return False
    return True


def _refuse_date_partitions(drop: Drop, snapshot: Snapshot) -> None:
    """Refuse dates in a timestamp partition column, which readers without the feature cannot parse."""
    names = {
        change.path[0]
        for change in recorded_type_changes(snapshot.schema)
        if change.after == TIMESTAMP_NTZ and change.path[0] in snapshot.partition_columns
    }
    for field in snapshot.schema:
        if field.name not in names:
            continue
        strings = snapshot.files.partition_column(snapshot.column_mapping.physical_name(field))
        if pc.any(pc.match_substring_regex(strings, _DATE)).as_py():
            raise FeatureRemovalError(
                f"The table feature {drop.feature} cannot be dropped now.",
                cause=f"The partition column {field.name} was widened from date to timestamp_ntz, but the "
                "log still has dates as its values.",
                fix="Overwrite the partitions from before the widening with timestamp values.",
            )
