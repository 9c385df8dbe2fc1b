"""Whether a stream can continue after the columns of its table changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delta_core.actions import Metadata
from delta_core.errors import StreamRestartRequiredError, StreamSchemaChangedError, StreamTableReplacedError
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import ArrayType, DataType, MapType, StructType
from delta_core.snapshot.table_definition import table_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDefinition:
    """The columns that a stream reads, as the table had them when the stream started.

    Attributes:
        uri: the table, for messages.
        version: the version with these columns.
        metadata: the metadata of this version.
    """

    uri: str
    version: int
    metadata: Metadata

    def require_compatible(self, version: int, metadata: Metadata) -> None:
        """Refuse a version whose columns do not fit those of the stream, as delta-spark does.

        Args:
            version: a version that is before or after that of the definition.
            metadata: its metadata.

        Raises:
            StreamTableReplacedError: the id of the table changed.
            StreamSchemaChangedError: a column was renamed or dropped, or has another type, or the partition
                columns changed.
            StreamRestartRequiredError: a later version has more columns.
        """
        if metadata.id != self.metadata.id:
            raise StreamTableReplacedError(
                f"The table {self.uri!r} was replaced while a stream read it.",
                cause=f"Version {version} has the table id {metadata.id}, and the stream {self.metadata.id}.",
                fix="Start a new stream, with another position or checkpoint.",
            )
        earlier = version < self.version
        old, new = (metadata, self.metadata) if earlier else (self.metadata, metadata)
        changes = list(_changes(*(self._columns(item, version) for item in (old, new))))
        if tuple(old.partition_columns) != tuple(new.partition_columns) and not changes:
            changes.append((False, "the partition columns changed"))
        refused = next((change for is_additive, change in changes if not is_additive), None)
        if refused is not None:
            raise StreamSchemaChangedError(
                f"A stream of {self.uri!r} cannot read the columns of version {version} together with those "
                f"of version {self.version}.",
                cause=f"Between the two versions {refused}.",
                fix="Finish reading the versions before the change. Then start a new stream at the version "
                "of the change, with another position or checkpoint.",
            )
        if changes and not earlier:
            raise StreamRestartRequiredError(
                f"Version {version} of {self.uri!r} has new columns that the stream does not read.",
                cause=f"When the stream started, at version {self.version}, {changes[0][1]}.",
                fix="Restart the stream at its last position. It then reads the new columns, too.",
            )

    def _columns(self, metadata: Metadata, version: int) -> tuple[StructType, ColumnMapping]:
        schema = table_schema(metadata, where=f"Version {version} of {self.uri!r}")
        return schema, ColumnMapping.of(metadata.configuration)


def _changes(
    old: tuple[StructType, ColumnMapping], new: tuple[StructType, ColumnMapping]
) -> Iterator[tuple[bool, str]]:
    """The changes from one schema to a later one: whether it only adds a column, and a description."""
    yield from _of_types(old[0], new[0], (old[1], new[1]), "")


def _of_types(
    old: DataType, new: DataType, mappings: tuple[ColumnMapping, ColumnMapping], path: str
) -> Iterator[tuple[bool, str]]:
    if isinstance(old, StructType) and isinstance(new, StructType):
        later = {mappings[1].physical_name(field).casefold(): field for field in new}
        for field in old:
            name = f"{path}.{field.name}" if path else field.name
            same = later.pop(mappings[0].physical_name(field).casefold(), None)
            if same is None:
                yield False, f"the column {name} was dropped or renamed"
            elif same.name.casefold() != field.name.casefold():
                yield False, f"the column {name} was renamed to {same.name}"
            else:
                yield from _of_types(field.data_type, same.data_type, mappings, name)
        for field in later.values():
            yield (
                True,
                f"the column {path}.{field.name} did not exist"
                if path
                else (f"the column {field.name} did not exist"),
            )
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _of_types(old.element_type, new.element_type, mappings, f"{path}.element")
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from _of_types(old.key_type, new.key_type, mappings, f"{path}.key")
        yield from _of_types(old.value_type, new.value_type, mappings, f"{path}.value")
    elif old != new:
        yield False, f"the type of the column {path} changed from {old} to {new}"
