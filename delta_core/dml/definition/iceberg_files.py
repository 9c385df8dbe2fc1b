"""Checks that existing files of a table comply with the rules of Iceberg compatibility for data files.

PROTOCOL.md, "Writer Requirements for IcebergCompatV1" and "Writer Requirements for IcebergCompatV2". The
check reads the footers of the files, because the log does not contain the needed information.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import Metadata, Protocol
from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan
from delta_core.errors import IcebergCompatibilityError, InvalidTableError
from delta_core.parquet.footer import MalformedFooter, check_data_file
from delta_core.schema.file_schema import file_fields
from delta_core.schema.types import ArrayType, MapType, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.table_features.iceberg_compat import active_compatibility

_ID = b"PARQUET:field_id"
_INT96 = "INT96"
_MAX_VIOLATIONS = 5


def newly_enabled_compatibilities(
    snapshot: Snapshot, protocol: Protocol, metadata: Metadata
) -> tuple[str, ...]:
    """The Iceberg compatibilities that the new definition activates and the table does not have yet."""
    before = active_compatibility(snapshot.protocol, snapshot.metadata)
    return tuple(name for name in active_compatibility(protocol, metadata) if name not in before)


def require_iceberg_files(
    snapshot: Snapshot, protocol: Protocol, metadata: Metadata, *, access: DataAccess
) -> None:
    """Refuse to enable a compatibility when a live file does not comply with it.

    Partition columns must be in every file, after the other columns. For `icebergCompatV2` timestamps must be
    64-bit integers, and the elements of arrays and maps must have the ids of the schema. There are two or
    three small reads for each live file, until a few violations are found. Nothing is read when no
    compatibility is newly enabled.

    Args:
        snapshot: the version of the table.
        protocol, metadata: the new table definition.
        access: the locations where files are allowed.

    Raises:
        IcebergCompatibilityError: files violate the rules. The error names some of them and the reasons.
        InvalidTableError: a file is damaged.
        MissingDataFileError: a file does not exist.
        PathEscapeError: a file is at a location that is not allowed.
    """
    enabled = newly_enabled_compatibilities(snapshot, protocol, metadata)
    if not enabled or not snapshot.files.num_files:
        return
    expected = _FileRules(WritePlan.of(protocol, metadata), strict="icebergCompatV2" in enabled)
    violations: list[str] = []
    for path in _paths(snapshot):
        violations += [f"{path} {what}" for what in expected.violations(_footer(snapshot, path, access))]
        if len(violations) >= _MAX_VIOLATIONS:
            break
    if violations:
        raise IcebergCompatibilityError(
            f"{' and '.join(enabled)} cannot be enabled, because existing files do not comply with it.",
            cause="; ".join(violations[:_MAX_VIOLATIONS]) + ".",
            fix="Copy the rows into a new table that is created with the property, or enable it while this "
            "table is empty.",
        )


class _FileRules:
    """The rules for the files of a table, derived from the write plan for new files."""

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
        """The violations of a file, as phrases that follow its path."""
        schema = footer.schema.to_arrow_schema()
        indexes = {name: index for index, name in enumerate(schema.names)}
        in_file = self._mapping.in_file(schema)
        columns = {field.name: in_file.column(field) for field in self._data}
        last = max((indexes[column.name] for column in columns.values() if column is not None), default=-1)
        for field in self._partitions:
            column = in_file.column(field)
            if column is None:
                yield f"lacks the partition column {field.name}"
            elif indexes[column.name] < last:
                yield f"has the partition column {field.name} before other columns"
        if not self._strict:
            return
        if any(footer.schema.column(index).physical_type == _INT96 for index in range(len(footer.schema))):
            yield "has 96-bit timestamps"
        for field in self._data:
            column = columns[field.name]
            expected = self._schema.field(self._mapping.physical_name(field)).type
            if column is None or not _has_elements(field.data_type):
                continue
            if not _same_ids(expected, schema.field(column.name).type):
                yield f"lacks the ids of the elements in the column {field.name}"


def _has_elements(data_type: object) -> bool:
    """Whether the type contains an array or a map, whose elements have their own ids."""
    if isinstance(data_type, StructType):
        return any(_has_elements(field.data_type) for field in data_type)
    return isinstance(data_type, ArrayType | MapType)


def _same_ids(expected: pa.DataType, actual: pa.DataType) -> bool:
    """Whether every element of a type in a file has the expected id. Structs may lack fields."""
    if pa.types.is_struct(expected):
        if not pa.types.is_struct(actual):
            return False
        present = {item.name: item for item in actual}
        return all(_same_ids(item.type, present[item.name].type) for item in expected if item.name in present)
    if pa.types.is_map(expected):
        return pa.types.is_map(actual) and all(
            _same_id(expected_field, actual_field)
            for expected_field, actual_field in (
                (expected.key_field, actual.key_field),
                (expected.item_field, actual.item_field),
            )
        )
    if pa.types.is_list(expected):
        return pa.types.is_list(actual) and _same_id(expected.value_field, actual.value_field)
    return True


def _same_id(expected: pa.Field, actual: pa.Field) -> bool:
    ids = [(item.metadata or {}).get(_ID) for item in (expected, actual)]
    return ids[0] == ids[1] and _same_ids(expected.type, actual.type)


def _paths(snapshot: Snapshot) -> Iterator[str]:
    for batch in snapshot.files.batches(["path"]):
        yield from batch.column("path").to_pylist()


def _footer(snapshot: Snapshot, path: str, access: DataAccess) -> pq.FileMetaData:
    with access.open_logged(path, store=snapshot.store) as source:
        try:
            check_data_file(source)
            return pq.read_metadata(source)
        except (MalformedFooter, pa.ArrowInvalid) as error:
            raise InvalidTableError(
                f"The data file {path!r} cannot be read.",
                cause=str(error),
                fix="Restore the table to a version without the file, or write its rows again.",
            ) from error
