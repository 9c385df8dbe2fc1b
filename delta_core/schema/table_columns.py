"""`TableColumns`: the parts of a table's metadata that a change of columns reads and may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from delta_core.schema.column_mapping import ColumnMapping, ColumnMappingMode
from delta_core.schema.evolution import validate_schema
from delta_core.schema.types import StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """The schema, partition columns and properties of a table, which a change of columns keeps consistent.

    A caller takes the three from the `metaData` action and stores all three back: a rename also changes
    partition columns and properties.

    Attributes:
        schema: the table's schema.
        partition_columns: in the schema's spelling.
        configuration: `metaData.configuration`.
    """

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)

    @property
    def mode(self) -> ColumnMappingMode:
        """The column mapping mode.

        Raises:
            InvalidTableError: the property's value is not a mode.
        """
        return ColumnMapping.of(self.configuration).mode

    @property
    def is_mapped(self) -> bool:
        """Whether columns have physical names and ids."""
        return self.mode is not ColumnMappingMode.NONE

    def is_enabled(self, key: str) -> bool:
        """Whether a property is set to true; any other value counts as false."""
        return self.configuration.get(key, "false").strip().lower() == "true"

    def validated(self, *, before: TableColumns | None = None) -> TableColumns:
        """The same columns, after a check of names and partition columns.

        Args:
            before: the table's previous columns, whose names stay allowed; None for a new table.

        Raises:
            SchemaError: see `evolution.validate_schema`.
        """
        validate_schema(
            self.schema,
            self.partition_columns,
            column_mapping=self.is_mapped,
            before=None if before is None else before.schema,
        )
        return self
