"""Table properties that are set automatically when a feature is added to the protocol or enabled.

PROTOCOL.md, "Row Tracking", "Iceberg Compatibility V1", "Iceberg Compatibility V2". Iceberg compatibility
needs column mapping, which the user may not have enabled. Hidden columns need names that no column of the
table ever had. Two automatic properties are set elsewhere: the assignment of column mapping sets the highest
column id, and the enablement version and time of in-commit timestamps are only known when the commit is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from uuid import uuid4

from delta_core.table_features.internal_properties import (
    COLUMN_MAPPING_MODE,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
)

_ICEBERG = ("icebergCompatV1", "icebergCompatV2")
_HIDDEN_COLUMNS = {
    ROW_ID_COLUMN: "_row-id-col-",
    ROW_COMMIT_VERSION_COLUMN: "_row-commit-version-col-",
}


def automatic_properties(
    features: Collection[str],
    configuration: Mapping[str, str],
    *,
    is_new: bool,
    fresh_name: Callable[[], str] = lambda: str(uuid4()),
) -> dict[str, str]:
    """The table properties to add; empty when none is missing.

    Args:
        features: the features that the table will support.
        configuration: the table's new properties, including those that the user sets.
        is_new: whether the table is being created. An existing table gets column mapping only on request,
            because that changes how its files are read.
        fresh_name: generates a unique name.

    Returns:
        Only properties that `configuration` lacks: existing values stay, whether they are valid or not.
    """
    added: dict[str, str] = {}
    compatible = any(
        name in features
        and configuration.get(f"delta.enable{name[0].upper()}{name[1:]}", "").lower() == "true"
        for name in _ICEBERG
    )
    if compatible and is_new and COLUMN_MAPPING_MODE not in configuration:
        added[COLUMN_MAPPING_MODE] = "name"
    if "rowTracking" in features:
        for key, prefix in _HIDDEN_COLUMNS.items():
            if key not in configuration:
                added[key] = prefix + fresh_name()
    return added
