"""Requirements of the change data feed on a table's columns (PROTOCOL.md, "Change Data Files")."""

from __future__ import annotations

from collections.abc import Mapping

from delta_core.errors import SchemaError
from delta_core.schema.column_mapping import NAME_KEY
from delta_core.schema.types import StructType

CHANGE_DATA_NAMES = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""The columns of change data besides the table's columns."""

_PROPERTY = "delta.enableChangeDataFeed"


def refuse_change_columns(schema: StructType, configuration: Mapping[str, str]) -> None:
    """Refuse a change data feed on a table that has a column with the name of one of the feed's columns.

    Raises:
        SchemaError: there is such a column; its values would collide with the feed's column.
    """
    if configuration.get(_PROPERTY, "false").strip().lower() != "true":
        return
    for field in schema:
        # A renamed column still has its physical name in files.
        names = {field.name.casefold(), str(field.metadata.get(NAME_KEY, "")).casefold()}
        if names & CHANGE_DATA_NAMES:
            raise SchemaError(
                f"A table with the column {field.name} cannot have a change data feed.",
                cause="The feed has a column of that name.",
                fix=f"Rename the column, or leave {_PROPERTY} out.",
            )
