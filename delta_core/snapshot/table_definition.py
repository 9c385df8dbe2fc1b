"""The table definition: protocol and metadata, with values that are derived once for all equal versions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from delta_core.actions import Metadata, Protocol
from delta_core.errors import CorruptLogError, InvalidTableError, SchemaError
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import ArrayType, DataType, MapType, StructType
from delta_core.table_features.clustering_domain import DOMAIN, ClusteringColumns
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.support import require_write_support
from delta_core.table_features.table_properties import TableProperties
from delta_core.table_features.upgrade import supported_features

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot


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


def table_schema(metadata: Metadata, *, where: str) -> StructType:
    """The schema that a `metaData` action holds.

    Args:
        metadata: the action.
        where: the version and the table, for messages.

    Raises:
        SchemaError: the schema string is invalid, or two columns have the same name.
        CorruptLogError: the schema is missing, or lacks a partition column.
        InvalidTableError: the column mapping mode requires names or ids that columns lack.
    """
    if not metadata.schema_string:
        raise CorruptLogError(
            f"{where} has no schema.",
            cause="Its metaData action has no schemaString.",
            fix="Read a later version.",
        )
    try:
        schema = schema_from_json(metadata.schema_string)
    except SchemaError as error:
        raise SchemaError(_located(error, where), cause=error.cause, fix=error.fix) from error
    doubled = _doubled(schema)
    if doubled is not None:
        raise SchemaError(
            f"The schema cannot be used: {where}.",
            cause=f"Two columns have the name {doubled}. Names are compared without case.",
            fix="Restore the table's metaData action from an earlier version.",
        )
    for name in metadata.partition_columns:
        field = schema.find(name)
        if field is None or isinstance(field.data_type, StructType | ArrayType | MapType):
            raise CorruptLogError(
                f"{where} cannot be read.",
                cause=f"Its metaData action lists the partition column {name!r}, and the schema has no "
                "column of that name with a primitive type.",
                fix="Restore the table's metaData action from an earlier version.",
            )
    try:
        mapping = ColumnMapping.of(metadata.configuration)
        for field in schema:
            mapping.physical_name(field)
    except InvalidTableError as error:
        raise InvalidTableError(_located(error, where), cause=error.cause, fix=error.fix) from error
    return schema


def clustering_of(snapshot: Snapshot) -> ClusteringColumns | None:
    """The clustering columns of a table; None if the protocol or the domain metadata does not define them.

    Does not load the live files.

    Raises:
        InvalidTableError: the domain metadata is invalid.
    """
    if "clustering" not in supported_features(snapshot.protocol):
        return None
    domain = snapshot.domain(DOMAIN)
    return None if domain is None else ClusteringColumns.of_domains({DOMAIN: domain})


def _located(error: InvalidTableError | SchemaError, where: str) -> str:
    return f"{error.problem.rstrip('.')}: {where}."


def _doubled(data_type: DataType) -> str | None:
    """A name that two fields of one struct share, at any depth, or None."""
    if isinstance(data_type, ArrayType):
        return _doubled(data_type.element_type)
    if isinstance(data_type, MapType):
        return _doubled(data_type.key_type) or _doubled(data_type.value_type)
    if not isinstance(data_type, StructType):
        return None
    seen: set[str] = set()
    for field in data_type:
        folded = field.name.casefold()
        if folded in seen:
            return field.name
        seen.add(folded)
    return next((name for field in data_type if (name := _doubled(field.data_type)) is not None), None)
