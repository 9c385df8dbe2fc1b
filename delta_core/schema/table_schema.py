"""`TableSchema`: the schema of an open table, with conversions."""

from __future__ import annotations

import pyarrow as pa

from delta_core.schema.arrow import to_arrow
from delta_core.schema.json import schema_to_json
from delta_core.schema.types import StructType


class TableSchema(StructType):
    """The table's schema, with conversions; equal to the `StructType` of the same fields."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructType) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    def to_arrow(self) -> pa.Schema:
        """Convert the schema to an Arrow schema."""
        return to_arrow(self)

    def to_json(self) -> str:
        """Convert the schema to the protocol's schema string."""
        return schema_to_json(self)
