"""Properties that a table gets by itself when a feature begins to be supported or is turned on.

PROTOCOL.md, "Row Tracking", "Iceberg Compatibility V1", "Iceberg Compatibility V2". A user who turns on
Iceberg compatibility has not thought of column mapping, and hidden columns need names that no column of the
table ever had. The highest column id belongs to column mapping's own assignment, and when commits began to
have their time is known only when the commit is written: both are not here.
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
    """What is added to a table's properties; empty when nothing is missing.

    Args:
        features: those that the table will support.
        configuration: the properties that it will have, those that the user gives among them.
        is_new: whether the table is being created. The columns of one that exists are mapped only by whoever
            asks for it, since that changes what its files mean.
        fresh_name: makes a name that nobody has.

    Returns:
        Only properties that `configuration` lacks: what was given stays, right or wrong.
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
