"""Whether a stream can continue after the columns of its table changed, by the rules of delta-spark.

A stream reads all versions with the columns that the table had when the stream started. So a version cannot
be read if it has a column more, a column that can be null where the stream's cannot, or a type that is not
the stream's or, in an earlier version, one that was widened to it. A restart helps if the stream can then
read its older rows with the columns of that version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from delta_core.actions import Metadata
from delta_core.errors import StreamRestartRequiredError, StreamSchemaChangedError, StreamTableReplacedError
from delta_core.schema.column_mapping import ColumnMapping, ColumnMappingMode
from delta_core.schema.type_changes import may_widen
from delta_core.schema.types import ArrayType, DataType, MapType, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import table_schema

_WIDENING: Final = frozenset({"typeWidening", "typeWidening-preview"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDefinition:
    """The columns that a stream reads, as the table had them when the stream started.

    Attributes:
        uri: the table, for messages.
        version: the version with these columns.
        metadata: the metadata of this version.
        widens: whether the table supports type widening.
    """

    uri: str
    version: int
    metadata: Metadata
    widens: bool = False

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """The definition of a stream that starts with a snapshot."""
        return cls(
            uri=snapshot.store.uri,
            version=snapshot.version,
            metadata=snapshot.metadata,
            widens=bool(_WIDENING & (snapshot.protocol.reader_features or frozenset())),
        )

    def require_compatible(self, version: int, metadata: Metadata) -> None:
        """Refuse a version whose columns do not fit those of the stream, as delta-spark does.

        Args:
            version: a version that is before or after that of the definition.
            metadata: its metadata.

        Raises:
            StreamTableReplacedError: the id of the table changed.
            StreamSchemaChangedError: the stream cannot read the version, not even after a restart.
            StreamRestartRequiredError: the stream can read the version after a restart.
        """
        if metadata.id != self.metadata.id:
            raise StreamTableReplacedError(
                f"The table {self.uri!r} was replaced while a stream read it.",
                cause=f"Version {version} has the table id {metadata.id}, and the stream {self.metadata.id}.",
                fix="Start a new stream, with another position or checkpoint.",
            )
        is_earlier = version < self.version
        old, new = (metadata, self.metadata) if is_earlier else (self.metadata, metadata)
        if (change := self._mapped_change(old, new)) is not None:
            raise self._refused(version, f"Between the two versions {change}.")
        data, read = self._columns(metadata, version), self._columns(self.metadata, self.version)
        problem = next(_unreadable(data, read, widens=self.widens and is_earlier), None)
        if problem is None and tuple(old.partition_columns) != tuple(new.partition_columns):
            problem = "the table has other partition columns"
        if problem is None:
            return
        if is_earlier or next(_unreadable(read, data, widens=self.widens), None) is not None:
            raise self._refused(version, f"In version {version} {problem}.")
        raise StreamRestartRequiredError(
            f"Version {version} of {self.uri!r} has other columns than the stream reads.",
            cause=f"The stream reads the columns of version {self.version}. In version {version} {problem}.",
            fix="Restart the stream at its last position. It then reads the columns of the newest version.",
        )

    def _mapped_change(self, old: Metadata, new: Metadata) -> str | None:
        """A change that column mapping makes possible without rewriting files; None without one."""
        mapping = ColumnMapping.of(new.configuration)
        if mapping.mode is ColumnMappingMode.NONE:
            return None
        mappings = ColumnMapping.of(old.configuration), mapping
        before, after = self._columns(old, self.version), self._columns(new, self.version)
        if (change := next(_dropped_or_renamed(before, after, mappings, ""), None)) is not None:
            return change
        same = tuple(old.partition_columns) == tuple(new.partition_columns)
        return None if same else "the partition columns changed"

    def _refused(self, version: int, cause: str) -> StreamSchemaChangedError:
        return StreamSchemaChangedError(
            f"A stream of {self.uri!r} cannot read the columns of version {version} together with those "
            f"of version {self.version}.",
            cause=cause,
            fix="Finish reading the versions before the change. Then start a new stream at the version "
            "of the change, with another position or checkpoint.",
        )

    def _columns(self, metadata: Metadata, version: int) -> StructType:
        return table_schema(metadata, where=f"Version {version} of {self.uri!r}")


def _dropped_or_renamed(
    old: DataType, new: DataType, mappings: tuple[ColumnMapping, ColumnMapping], path: str
) -> Iterator[str]:
    if isinstance(old, StructType) and isinstance(new, StructType):
        later = {mappings[1].physical_name(field).casefold(): field for field in new}
        for field in old:
            name = _joined(path, field.name)
            same = later.get(mappings[0].physical_name(field).casefold())
            if same is None:
                yield f"the column {name} was dropped or renamed"
            elif same.name != field.name:
                yield f"the column {name} was renamed to {same.name}"
            else:
                yield from _dropped_or_renamed(field.data_type, same.data_type, mappings, name)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _dropped_or_renamed(old.element_type, new.element_type, mappings, f"{path}.element")
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from _dropped_or_renamed(old.key_type, new.key_type, mappings, f"{path}.key")
        yield from _dropped_or_renamed(old.value_type, new.value_type, mappings, f"{path}.value")


def _unreadable(data: DataType, read: DataType, *, widens: bool, path: str = "") -> Iterator[str]:
    """The reasons why rows of one type cannot be read as rows of another one."""
    if isinstance(data, StructType) and isinstance(read, StructType):
        fields = {field.name.casefold(): field for field in read}
        for field in data:
            name = _joined(path, field.name)
            same = fields.get(field.name.casefold())
            if same is None:
                yield f"there is the column {name}, which the stream does not read"
            elif same.name != field.name:
                yield f"the column {same.name} has the name {name}"
            elif field.nullable and not same.nullable:
                yield f"the column {name} can be null, and in the stream it cannot"
            else:
                yield from _unreadable(field.data_type, same.data_type, widens=widens, path=name)
    elif isinstance(data, ArrayType) and isinstance(read, ArrayType):
        if data.contains_null and not read.contains_null:
            yield f"the elements of {path} can be null, and in the stream they cannot"
        yield from _unreadable(data.element_type, read.element_type, widens=widens, path=f"{path}.element")
    elif isinstance(data, MapType) and isinstance(read, MapType):
        if data.value_contains_null and not read.value_contains_null:
            yield f"the values of {path} can be null, and in the stream they cannot"
        yield from _unreadable(data.key_type, read.key_type, widens=widens, path=f"{path}.key")
        yield from _unreadable(data.value_type, read.value_type, widens=widens, path=f"{path}.value")
    elif data != read and not (widens and may_widen(data, read)):
        yield f"the column {path} has the type {data}, and in the stream the type {read}"


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
