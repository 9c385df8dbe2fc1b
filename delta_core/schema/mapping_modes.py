"""Changes of the column mapping mode: the allowed changes, and their effect on a table's columns.

As in delta-spark:

- A new table can have any mode.
- A table with files can change from `none` to `name` without a rewrite, since its files have the names.
- It cannot change from `none` to `id`, or between `name` and `id`: its files lack the ids, or readers of old
  versions rely on the first mode.
- It can change back to `none` by rewriting every file.
"""

from __future__ import annotations

from dataclasses import replace

from delta_core.errors import InvalidTablePropertyError, SchemaEvolutionError
from delta_core.schema.column_mapping import MODE_KEY, ColumnMappingMode
from delta_core.schema.column_paths import display_path, walk_fields
from delta_core.schema.evolution import ILLEGAL_CHARACTERS
from delta_core.schema.mapping_assignment import assign_existing, strip_mapping
from delta_core.schema.mapping_check import MAX_ID_KEY
from delta_core.schema.table_columns import TableColumns

_NEEDS_MAPPING = ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3")


def parse_mode(value: str) -> ColumnMappingMode:
    """Parse a mode in a user's input, in any case.

    Raises:
        InvalidTablePropertyError: the mode does not exist.
    """
    try:
        return ColumnMappingMode(value.strip().lower())
    except ValueError:
        raise InvalidTablePropertyError(
            f"The table property {MODE_KEY} cannot be {value!r}.",
            cause="The supported modes are 'none', 'name' and 'id'.",
            fix="Use name.",
        ) from None


def change_mode(columns: TableColumns, mode: ColumnMappingMode) -> TableColumns:
    """Change the mode of an existing table, as far as its files allow it.

    From `none` to `name` every column gets an id, and its own name as its physical name. The current mode
    changes nothing. For a new table use `mapping_assignment.assign_new`.

    Raises:
        InvalidTablePropertyError: the change would need a rewrite of the files, or is not possible.
        InvalidTableError: see `mapping_assignment.assign_existing`.
    """
    current = columns.mode
    if current is mode:
        return columns
    if current is ColumnMappingMode.NONE and mode is ColumnMappingMode.NAME:
        return assign_existing(columns)
    if mode is ColumnMappingMode.NONE:
        cause = "The files have physical names; without the mapping, columns would not be found in the files."
        fix = "Drop the feature columnMapping, which rewrites every file."
    elif current is ColumnMappingMode.NONE:
        cause = "The mode id finds columns by ids in the files, and the table's files have no ids."
        fix = "Use the mode name, or copy the rows into a new table with the mode id."
    else:
        cause = "Readers of the table rely on its first mode."
        fix = "Copy the rows into a new table that has the other mode."
    raise InvalidTablePropertyError(
        f"The column mapping mode cannot change from {current} to {mode}.", cause=cause, fix=fix
    )


def remove_mapping(columns: TableColumns) -> TableColumns:
    """Remove the column mapping, for a commit that rewrites every live file.

    In the same commit the caller rewrites each file, its statistics and its partition values from physical to
    logical names. A file that is not rewritten would be misread.

    Returns:
        The schema without ids and physical names, and the configuration without the mapping's properties.

    Raises:
        SchemaEvolutionError: a column has a name that is only allowed with column mapping.
        InvalidTablePropertyError: Iceberg compatibility is enabled, which needs the mapping.
    """
    if not columns.is_mapped:
        return columns
    needed = [key for key in _NEEDS_MAPPING if columns.is_enabled(key)]
    if needed:
        raise InvalidTablePropertyError(
            f"The column mapping cannot be removed while {needed[0]} is true.",
            cause="Iceberg compatibility finds columns by their ids.",
            fix=f"Set {needed[0]} to false first.",
        )
    illegal = [path for path, field in walk_fields(columns.schema) if set(field.name) & ILLEGAL_CHARACTERS]
    if illegal:
        raise SchemaEvolutionError(
            f"Column mapping cannot be removed: files cannot hold {', '.join(map(display_path, illegal))}.",
            cause="Without column mapping, names cannot contain any of the characters ' ,;{}()\\n\\t='.",
            fix="Rename these columns first.",
        )
    configuration = {k: v for k, v in columns.configuration.items() if k not in (MODE_KEY, MAX_ID_KEY)}
    return replace(columns, schema=strip_mapping(columns.schema), configuration=configuration).validated()
