"""Which changes of the column mapping mode there may be, and what each does to a table's columns.

As in delta-spark: a new table takes any mode; a table with files goes from `none` to `name` without a file
being touched, since its files have the names already; from `none` to `id` and between `name` and `id` it
does not go, as its files lack what the other mode looks for or as readers of old versions would; back to
`none` it goes by writing every file anew.
"""

from __future__ import annotations

from dataclasses import replace

from delta_core.errors import InvalidTablePropertyError, SchemaEvolutionError
from delta_core.schema.column_mapping import MODE_KEY, ColumnMapping, ColumnMappingMode
from delta_core.schema.column_paths import shown, walk_fields
from delta_core.schema.evolution import ILLEGAL_CHARACTERS
from delta_core.schema.mapping_assignment import assign_existing, strip_mapping
from delta_core.schema.mapping_check import MAX_ID_KEY
from delta_core.schema.table_columns import TableColumns

_NEEDS_MAPPING = ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3")


def parse_mode(text: str) -> ColumnMappingMode:
    """The mode that a user writes, in any case.

    Raises:
        InvalidTablePropertyError: there is no such mode.
    """
    try:
        return ColumnMappingMode(text.strip().lower())
    except ValueError:
        raise InvalidTablePropertyError(
            f"The table property {MODE_KEY} cannot be {text!r}",
            cause="There are the modes none, name and id",
            fix="Use name",
        ) from None


def change_mode(columns: TableColumns, wanted: ColumnMappingMode) -> TableColumns:
    """The columns of an existing table in another mode, as far as its files allow it.

    From `none` to `name` every column gets an id, and its own name as its physical name. The mode that the
    table has changes nothing. A new table's mode is for `mapping_assignment.assign_new`.

    Raises:
        InvalidTablePropertyError: the files would have to be written anew, or cannot be used.
        InvalidTableError: see `mapping_assignment.assign_existing`.
    """
    current = columns.mode
    if current is wanted:
        return columns
    if current is ColumnMappingMode.NONE and wanted is ColumnMappingMode.NAME:
        return assign_existing(columns)
    if wanted is ColumnMappingMode.NONE:
        cause = "The files have physical names, and without the mapping columns would not be found in them"
        fix = "Drop the feature columnMapping, which writes every file anew"
    elif current is ColumnMappingMode.NONE:
        cause = "The mode id finds columns by ids in the files, and the table's files have none"
        fix = "Use the mode name, or copy the rows into a new table with the mode id"
    else:
        cause = "Readers of the table rely on the mode that it was given first"
        fix = "Copy the rows into a new table that has the other mode"
    raise InvalidTablePropertyError(
        f"The column mapping mode cannot change from {current} to {wanted}", cause=cause, fix=fix
    )


def require_mode_kept(before: TableColumns, after: TableColumns) -> None:
    """Check that a change of properties leaves the mapping's own properties as they are.

    For whoever takes properties from a user: the mode changes through `change_mode` alone, and the highest
    id is no user's to set.

    Raises:
        InvalidTablePropertyError: the mode, or the highest id, differs.
    """
    if ColumnMapping.of(after.configuration).mode is not before.mode:
        change_mode(before, ColumnMapping.of(after.configuration).mode)
        raise InvalidTablePropertyError(
            f"The table property {MODE_KEY} is not set by itself",
            cause="Every column gets an id and a physical name in the same commit",
            fix="Enable column mapping with the operation for it",
        )
    if before.configuration.get(MAX_ID_KEY) != after.configuration.get(MAX_ID_KEY):
        raise InvalidTablePropertyError(
            f"The table property {MAX_ID_KEY} cannot be set",
            cause="It counts the ids that columns were given",
            fix="Leave it out",
        )


def remove_mapping(columns: TableColumns) -> TableColumns:
    """The columns without a mapping, for a commit that writes every live file anew.

    The caller rewrites each file from physical to logical names, its statistics and partition values too,
    in the commit that takes this schema; none that is left would be read correctly.

    Returns:
        The schema without ids and physical names, the configuration without the mapping's properties.

    Raises:
        SchemaEvolutionError: a column has a name that only a mapping allows.
        InvalidTablePropertyError: Iceberg compatibility is enabled, which needs the mapping.
    """
    if not columns.is_mapped:
        return columns
    needed = [key for key in _NEEDS_MAPPING if columns.is_enabled(key)]
    if needed:
        raise InvalidTablePropertyError(
            f"The column mapping cannot be removed while {needed[0]} is true",
            cause="Iceberg compatibility finds columns by their ids",
            fix=f"Set {needed[0]} to false first",
        )
    illegal = [path for path, field in walk_fields(columns.schema) if set(field.name) & ILLEGAL_CHARACTERS]
    if illegal:
        raise SchemaEvolutionError(
            f"The column mapping cannot be removed: {', '.join(map(shown, illegal))} cannot be in files",
            cause="Without a mapping names hold none of the characters ' ,;{}()\\n\\t='",
            fix="Rename these columns first",
        )
    configuration = {k: v for k, v in columns.configuration.items() if k not in (MODE_KEY, MAX_ID_KEY)}
    return replace(columns, schema=strip_mapping(columns.schema), configuration=configuration).validated()
