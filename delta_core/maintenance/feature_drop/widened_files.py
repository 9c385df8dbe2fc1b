"""Data files of before a column's type was widened (PROTOCOL.md, "Type Widening").

A reader that does not know the feature needs every file to have the table's types. Which files do not shows
in their footers alone: they are written again. Then nothing needs the record of the changes, and it goes, in
a commit that only ever follows the version whose files were looked at.
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
from delta_core.maintenance.feature_drop.run import Run
from delta_core.maintenance.feature_drop.steps import repeated, rewrite_files
from delta_core.maintenance.rewriting.reading import readable
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.type_changes import ENABLED_KEY, recorded_type_changes, without_type_changes
from delta_core.schema.types import TIMESTAMP_NTZ, StructField
from delta_core.snapshot.snapshot import Snapshot

_DATE = r"^[+-]?\d+-\d+-\d+$"


def without_widened_columns(run: Run, latest: Snapshot) -> Snapshot:
    """Every file has the table's types, and the schema says nothing of others.

    Requests: two or three small reads for each live file, and those of writing the narrow ones again.

    Raises:
        FeatureRemovalError: a partition column was widened to a type whose values the log spells otherwise.
        MissingDataFileError, InvalidTableError: a file's footer cannot be read.
        PathEscapeError: a file is neither in the table nor below a root that is allowed.
    """
    _refuse_respelled_partitions(run, latest)
    wide: set[str] = set()

    def step(now: Snapshot) -> bool:
        if run.configure(now, {ENABLED_KEY: None}) is not now:
            return True
        changed = _changed_columns(now)
        if not changed:
            return False
        narrow = list(_narrow_files(run, now, changed, wide))
        if narrow:
            wide.update(rewrite_files(run, now, narrow))
            return True
        _refuse_respelled_partitions(run, now)  # a restore may have brought some back
        run.commit(
            now,
            with_schema(now, without_type_changes(now.schema)),
            operation="CHANGE COLUMNS",
            parameters={"columns": sorted(field.name for field in changed), "typeChanges": None},
            only_next=True,
        )
        return True

    return repeated(latest, step)


def _changed_columns(snapshot: Snapshot) -> list[StructField]:
    """The columns in which, at whatever depth, a type was changed."""
    names = {change.path[0] for change in recorded_type_changes(snapshot.schema)}
    return [field for field in snapshot.schema if field.name in names]


def _narrow_files(run: Run, snapshot: Snapshot, changed: list[StructField], wide: set[str]) -> Iterator[str]:
    """Live files that have another type for one of the columns; the others are noted as wide."""
    plan = WritePlan.of(snapshot.protocol, snapshot.metadata)
    wanted = {
        plan.mapping.physical_name(field): field
        for field in changed
        if field.name not in plan.partition_columns
    }
    types = {item.name: item.type for item in PhysicalStep(plan).file_schema if item.name in wanted}
    columns = [(wanted[name], kind) for name, kind in types.items()]
    for batch in snapshot.files.batches(["path"]):
        for path in batch.column("path").to_pylist():
            if path in wide:
                continue
            with readable(path), run.access.open_logged(path, store=snapshot.store) as source:
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


def _refuse_respelled_partitions(run: Run, snapshot: Snapshot) -> None:
    """A date in the log is no time to who does not know that the column once held dates."""
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
                f"The table feature {run.feature} cannot be dropped now.",
                cause=f"The partition column {field.name} was widened from dates to times, and the log "
                "still spells dates.",
                fix="Overwrite the partitions of before, so that their values are times.",
            )
