"""The table definition: protocol and metadata, with values that are derived once for all equal versions."""

from __future__ import annotations

from functools import cached_property

from delta_core.actions import Metadata, Protocol
from delta_core.errors import CorruptLogError
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructType
from delta_core.snapshot.table_schema import table_schema
from delta_core.table_features.support import require_write_support
from delta_core.table_features.table_properties import TableProperties
from delta_core.table_features.writer_kind import WriterKind


class TableDefinition:
    """A protocol and a metadata action, and the values that follow from them alone."""

    def __init__(self, protocol: Protocol, metadata: Metadata) -> None:
        self.protocol = protocol
        self.metadata = metadata
        self._schema: StructType | None = None
        self._permitted: set[tuple[WriterKind, bool, bool]] = set()

    def schema(self, *, where: str) -> StructType:
        """The table's schema. Raises like `table_schema`; `where` is for its messages."""
        if self._schema is None:
            self._schema = table_schema(self.metadata, where=where)
        return self._schema

    @cached_property
    def column_mapping(self) -> ColumnMapping:
        """The mapping of columns to physical names. Raises InvalidTableError for an unknown mode."""
        return ColumnMapping.of(self.metadata.configuration)

    @cached_property
    def properties(self) -> TableProperties:
        """The table properties."""
        return TableProperties.of(self.metadata.configuration)

    def require_writable(
        self, *, writer_kind: WriterKind, has_deletion_vectors: bool, has_v2_checkpoint: bool, operation: str
    ) -> None:
        """Refuse like `require_write_support`. A check that succeeded is not repeated."""
        facts = (writer_kind, has_deletion_vectors, has_v2_checkpoint)
        if facts in self._permitted:
            return
        require_write_support(
            self.protocol,
            self.metadata,
            writer_kind=writer_kind,
            has_deletion_vectors=has_deletion_vectors,
            has_v2_checkpoint=has_v2_checkpoint,
            operation=operation,
        )
        self._permitted.add(facts)


def unlisted_deletion_vector(operation: str, *, where: str) -> CorruptLogError:
    """The error for a deletion vector in a table whose protocol does not list the feature."""
    return CorruptLogError(
        f"Cannot {operation}: a live file of {where} has a deletion vector, and the protocol does not list "
        "the feature deletionVectors.",
        cause="Reading the file without its deletion vector would return deleted rows.",
        fix="Restore the table to a version before it, with the engine that wrote the deletion vector.",
    )
