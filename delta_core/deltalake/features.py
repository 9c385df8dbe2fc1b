"""The table features by the names of the `deltalake` package."""

from __future__ import annotations

from enum import Enum


class TableFeatures(Enum):
    """A table feature. `protocol_name` is its name in the table's protocol."""

    ColumnMapping = "ColumnMapping"
    DeletionVectors = "DeletionVectors"
    TimestampWithoutTimezone = "TimestampWithoutTimezone"
    V2Checkpoint = "V2Checkpoint"
    AppendOnly = "AppendOnly"
    Invariants = "Invariants"
    CheckConstraints = "CheckConstraints"
    ChangeDataFeed = "ChangeDataFeed"
    GeneratedColumns = "GeneratedColumns"
    IdentityColumns = "IdentityColumns"
    RowTracking = "RowTracking"
    DomainMetadata = "DomainMetadata"
    IcebergCompatV1 = "IcebergCompatV1"
    VariantType = "VariantType"
    VariantTypePreview = "VariantTypePreview"

    @property
    def protocol_name(self) -> str:
        """The name of the feature in the protocol."""
        other = {"TimestampWithoutTimezone": "timestampNtz", "VariantTypePreview": "variantType-preview"}
        return other.get(self.value, self.value[:1].lower() + self.value[1:])
