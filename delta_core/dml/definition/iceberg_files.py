"""Whether files that a table has already are what Iceberg compatibility asks of data files.

PROTOCOL.md, "Writer Requirements for IcebergCompatV1" and "Writer Requirements for IcebergCompatV2": what the
log does not show is in the files' footers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import Metadata, Protocol
from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan
from delta_core.errors import IcebergCompatibilityError, InvalidTableError
from delta_core.schema.file_schema import file_fields
from delta_core.schema.types import ArrayType, MapType, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY
from delta_core.storage.parquet_footer import MalformedFooter, check_data_file
from delta_core.storage.uri import resolve_data_path
from delta_core.table_features.iceberg_compat import active_compatibility

_ID = b"PARQUET:field_id"
_INT96 = "INT96"
_MOST_FILES_NAMED = 5


def begins_for_iceberg(snapshot: Snapshot, protocol: Protocol, metadata: Metadata) -> tuple[str, ...]:
    """The compatibilities that are active by these and are not by the table's own."""
    before = active_compatibility(snapshot.protocol, snapshot.metadata)
    return tuple(name for name in active_compatibility(protocol, metadata) if name not in before)


def require_iceberg_files(snapshot: Snapshot, protocol: Protocol, metadata: Metadata) -> None:
    """Refuse to turn a compatibility on where a live file was written without it.

    Partition columns must be in every file, behind the others. For `icebergCompatV2` times must be 64-bit
    integers, and what is in arrays and maps must have the ids that the schema gives it. Two or three small
    reads for each live file, until a few are found that do not fit; none where nothing is turned on.

    Args:
        snapshot: the table.
        protocol, metadata: what they become.

    Raises:
        IcebergCompatibilityError: names a few of the files, and what is wrong with each.
        InvalidTableError: a file is damaged.
        MissingDataFileError: a file is not there.
    """
    begun = begins_for_iceberg(snapshot, protocol, metadata)
    if not begun or not snapshot.files.num_files:
        return
    expected = _Expected(WritePlan.of(protocol, metadata), strict="icebergCompatV2" in begun)
    found: list[str] = []
    for path in _paths(snapshot):
        found += [f"{path} {what}" for what in expected.violations(_footer(snapshot, path))]
        if len(found) >= _MOST_FILES_NAMED:
            break
    if found:
        raise IcebergCompatibilityError(
            f"{' and '.join(begun)} cannot be turned on: the table has files that were written without it.",
            cause="; ".join(found[:_MOST_FILES_NAMED]),
            fix="Copy the rows into a new table that has the property from the beginning, or turn it on "
            "while this one is empty.",
        )


class _Expected:
    """What files must look like, by the plan that new ones are written by."""

    def __init__(self, plan: WritePlan, *, strict: bool) -> None:
        self._mapping = plan.mapping
        self._strict = strict
        self._schema = PhysicalStep(plan).file_schema
        fields = file_fields(
            plan.schema, partition_columns=plan.partition_columns, materialise_partition_columns=True
        )
        count = len(plan.partition_columns)
        self._data = fields[: len(fields) - count]
        self._partitions = fields[len(fields) - count :]

    def violations(self, footer: pq.FileMetaData) -> Iterator[str]:
        """What is wrong with a file, in words that follow its path."""
        schema = footer.schema.to_arrow_schema()
        places = {name: index for index, name in enumerate(schema.names)}
        in_file = self._mapping.in_file(schema)
        columns = {field.name: in_file.column(field) for field in self._data}
        last = max((places[found.name] for found in columns.values() if found is not None), default=-1)
        for field in self._partitions:
            found = in_file.column(field)
            if found is None:
                yield f"lacks the partition column {field.name}"
            elif places[found.name] < last:
                yield f"has the partition column {field.name} before other columns"
        if not self._strict:
            return
        if any(footer.schema.column(index).physical_type == _INT96 for index in range(len(footer.schema))):
            yield "has times of 96 bits"
        for field in self._data:
            found = columns[field.name]
            wanted = self._schema.field(self._mapping.physical_name(field)).type
            if found is None or not _has_parts(field.data_type):
                continue
            if not _same_ids(wanted, schema.field(found.name).type):
                yield f"lacks ids of what is in the column {field.name}"


def _has_parts(data_type: object) -> bool:
    """Whether there is an array or a map in it, whose parts have ids of their own."""
    if isinstance(data_type, StructType):
        return any(_has_parts(field.data_type) for field in data_type)
    return isinstance(data_type, ArrayType | MapType)


def _same_ids(wanted: pa.DataType, found: pa.DataType) -> bool:
    """Whether every part of a type that is in the file has the id that it should; structs may lack fields."""
    if pa.types.is_struct(wanted):
        if not pa.types.is_struct(found):
            return False
        there = {item.name: item for item in found}
        return all(_same_ids(item.type, there[item.name].type) for item in wanted if item.name in there)
    if pa.types.is_map(wanted):
        return pa.types.is_map(found) and all(
            _same_id(one, other)
            for one, other in (
                (wanted.key_field, found.key_field),
                (wanted.item_field, found.item_field),
            )
        )
    if pa.types.is_list(wanted):
        return pa.types.is_list(found) and _same_id(wanted.value_field, found.value_field)
    return True


def _same_id(wanted: pa.Field, found: pa.Field) -> bool:
    ids = [(item.metadata or {}).get(_ID) for item in (wanted, found)]
    return ids[0] == ids[1] and _same_ids(wanted.type, found.type)


def _paths(snapshot: Snapshot) -> Iterator[str]:
    for batch in snapshot.files.batches(["path"]):
        yield from batch.column("path").to_pylist()


def _footer(snapshot: Snapshot, path: str) -> pq.FileMetaData:
    found = resolve_data_path(path, root_uri=snapshot.store.uri)
    with TABLE_ONLY.open(snapshot.store, found) as source:
        try:
            check_data_file(source)
            return pq.read_metadata(source)
        except (MalformedFooter, pa.ArrowInvalid) as error:
            raise InvalidTableError(
                f"The data file {path!r} cannot be read.",
                cause=str(error),
                fix="Restore the table to a version without the file, or write its rows again.",
            ) from error
