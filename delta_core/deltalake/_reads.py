"""Reads of `delta_core.deltalake` from a table of `delta_core`, in the forms of the `deltalake` package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from delta_core import table as core
from delta_core.actions import DeletionVectorDescriptor
from delta_core.arguments import epoch_ms, name_list
from delta_core.boundary import typed_iterator
from delta_core.deletion_vectors.file_update import rows_in_footer
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.errors import VersionNotFoundError
from delta_core.expressions.ast import And, Expression
from delta_core.expressions.dnf import from_dnf
from delta_core.log.listing import list_log
from delta_core.scan import Scan
from delta_core.snapshot.commit_time import CommitTimes
from delta_core.snapshot.history import history
from delta_core.storage.data_access import DataAccess
from delta_core.table_features.stats_leaves import stats_leaves

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", re.IGNORECASE)
_VERSION, _TIME = "_commit_version", "_commit_timestamp"
_CHANGE_TYPES = {"_change_type": pa.string_view(), _VERSION: pa.uint64(), _TIME: pa.timestamp("ms")}
_STATISTICS = frozenset({"null_count", "min", "max"})
_SELECTION = pa.schema(
    [pa.field("filepath", pa.string(), nullable=False), pa.field("selection_vector", pa.list_(pa.bool_()))]
)


def parsed_time(text: str) -> datetime | None:
    """The time of a string in RFC 3339; None for another string."""
    if _RFC_3339.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:
        return None


def version_at(table: core.DeltaTable, time: datetime) -> int:
    """The version that was current at a time; the oldest, or newest, for a time before, or after, all."""
    listing = list_log(table.store)
    times = CommitTimes(table.store, listing)
    position = times.since((epoch_ms(time) or 0) + 1)
    return times.files[max(0, position - 1)].version


def file_uris(table: core.DeltaTable, predicate: Expression | str | None) -> list[str]:
    """The URIs of the files, whatever features the table has."""
    paths = Scan(table.snapshot, predicate=predicate).files(["path"]).column("path").to_pylist()
    return [path if "://" in path else f"{table.table_uri}/{path}" for path in paths]


def add_actions(table: core.DeltaTable, flatten: bool) -> pa.Table:
    """The live files; times are whole milliseconds."""
    rows = _configured(table, table.get_add_actions(flatten), flatten)
    index = rows.schema.get_field_index("modification_time")
    rows = rows.set_column(index, "modification_time", rows.column(index).cast(pa.int64()))
    return rows.drop_columns("num_deleted") if pc.all(pc.is_null(rows["num_deleted"])).as_py() else rows


def _configured(table: core.DeltaTable, rows: pa.Table, flatten: bool) -> pa.Table:
    """The columns without those of statistics that the table's properties exclude."""
    snapshot = table.snapshot
    leaves = stats_leaves(snapshot.schema, snapshot.properties, partition_columns=snapshot.partition_columns)
    kept = {".".join(leaf.path) for leaf in leaves}
    if flatten:
        excluded = [
            name
            for name in rows.column_names
            if name.partition(".")[0] in _STATISTICS and "." in name and name.partition(".")[2] not in kept
        ]
        return rows.drop_columns(excluded)
    for group in _STATISTICS.intersection(rows.column_names):
        index = rows.schema.get_field_index(group)
        values = rows.column(index).combine_chunks()
        names = [field.name for field in values.type if field.name in kept]
        if names:
            fields = [values.field(name) for name in names]
            rows = rows.set_column(index, group, pa.StructArray.from_arrays(fields, names))
        else:
            rows = rows.remove_column(index)
    return rows


def read_table(
    table: core.DeltaTable,
    *,
    columns: Sequence[str] | None,
    partitions: Expression | str | None,
    filters: Any,
    filesystem: pafs.FileSystem | None,
) -> pa.Table:
    """The rows as a table.

    Filters of tuples, and no other filesystem, are read by `Scan`. A dataset of Arrow does the rest.
    """
    names = name_list(columns)
    if filesystem is None and (filters is None or isinstance(filters, list | tuple)):
        wanted = _both(partitions, filters)
        return table.to_pyarrow_table(names, wanted)
    expression = pq.filters_to_expression(filters) if isinstance(filters, list | tuple) else filters
    dataset = table.to_pyarrow_dataset(partitions, filesystem=filesystem)
    return dataset.to_table(columns=None if names is None else list(names), filter=expression)


def _both(partitions: Expression | str | None, filters: Any) -> Any:
    if partitions is None or filters is None:
        return partitions if filters is None else filters
    return And((partitions, from_dnf(filters))) if not isinstance(partitions, str) else partitions


def changes(
    table: core.DeltaTable,
    *,
    versions: tuple[int, int | None],
    times: tuple[str | datetime | None, str | datetime | None],
    columns: Sequence[str] | None,
    predicate: str | None,
    allow_out_of_range: bool,
) -> pa.RecordBatchReader:
    """The change data of a range; see `DeltaTable.load_cdf` of both packages."""
    start, end = (_utc(one) for one in times)
    newest = table.snapshot.refresh()
    first = versions[0]
    is_after = first > newest.version
    if start is not None:
        is_after = (epoch_ms(start) or 0) > newest.timestamp_ms
    if is_after and allow_out_of_range:
        nothing = table.load_cdf(newest.version, newest.version, columns=columns, predicate="false")
        return pa.RecordBatchReader.from_batches(_with_times(nothing.schema), [])
    if is_after:
        raise VersionNotFoundError(
            f"Start timestamp {start} is greater than latest commit timestamp"
            if start is not None
            else f"Invalid table version: {first}",
            cause=f"The newest version is {newest.version}.",
            fix="Start earlier, or pass allow_out_of_range=True to get no rows.",
        )
    last = versions[1]
    if end is not None:
        last = version_at(table, end)
    elif last is not None:
        last = min(last, newest.version)
    names = name_list(columns)
    read = names
    if names is not None and _TIME in names and _VERSION not in names:
        read = [*names, _VERSION]
    found = table.load_cdf(first, last, start, None, columns=read, predicate=predicate)
    schema = _with_times(found.schema)
    if _TIME not in schema.names:
        return pa.RecordBatchReader.from_batches(
            schema, typed_iterator((batch.cast(schema) for batch in found), doing="reading the changes")
        )
    if names is not None:
        schema = pa.schema([schema.field(name) for name in names])
    return pa.RecordBatchReader.from_batches(
        schema, typed_iterator(_with_recorded_times(table, found, schema), doing="reading the changes")
    )


def _with_times(schema: pa.Schema) -> pa.Schema:
    """The schema of changes with the types of `deltalake`, such as times without a time zone."""
    return pa.schema([field.with_type(_CHANGE_TYPES.get(field.name, field.type)) for field in schema])


def _with_recorded_times(
    table: core.DeltaTable, found: pa.RecordBatchReader, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The batches with the times that `commitInfo` records. A commit without a time has that of its file."""
    recorded: dict[int, int] = {}
    for batch in found:
        versions = batch.column(_VERSION)
        missing = sorted(set(pc.unique(versions).to_pylist()) - recorded.keys())
        if missing:
            newest = table.snapshot.refresh()
            for entry in history(newest, limit=newest.version - missing[0] + 1):
                info = entry.commit_info
                recorded[entry.version] = (
                    entry.timestamp_ms if info.timestamp_ms is None else info.timestamp_ms
                )
        times = pa.array([recorded.get(version) for version in versions.to_pylist()], pa.timestamp("ms"))
        arrays = [times if item.name == _TIME else batch.column(item.name).cast(item.type) for item in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _utc(time: str | datetime | None) -> datetime | None:
    """A time of a caller; one without a time zone is in UTC."""
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if time is None or time.tzinfo is not None:
        return time
    return time.replace(tzinfo=UTC)


def selection_vectors(table: core.DeltaTable) -> pa.RecordBatchReader:
    """One row for each file with a deletion vector: its URI, and whether each row is still in the table."""
    return pa.RecordBatchReader.from_batches(_SELECTION, _selections(table))


def _selections(table: core.DeltaTable) -> Iterator[pa.RecordBatch]:
    snapshot = table.snapshot
    access = DataAccess(allowed_roots=(), clock=snapshot.clock)
    files = Scan(snapshot).files(["path", "deletion_vector"])
    for path, vector in zip(
        files.column("path").to_pylist(), files.column("deletion_vector").to_pylist(), strict=True
    ):
        if vector is None:
            continue
        place = access.locate(path, store=snapshot.store)
        count = rows_in_footer(place, access=access)
        kept = np.ones(count, dtype=bool)
        deleted = read_deletion_vector(
            snapshot.store, DeletionVectorDescriptor(**vector), num_rows=count, access=access
        )
        kept[np.asarray(deleted)] = False
        yield pa.RecordBatch.from_arrays(
            [pa.array([f"{place.store.uri}/{path}"]), pa.array([kept.tolist()], pa.list_(pa.bool_()))],
            schema=_SELECTION,
        )
