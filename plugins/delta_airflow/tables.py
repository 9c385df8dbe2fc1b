"""Opening tables of a connection in a task's own process, with its allowed roots and its credentials."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.table_versions import recorded_version
from delta_core.errors import TableNotFoundError

if TYPE_CHECKING:
    from delta_core import DeltaTable


def open_table(
    hook: DeltawardHook,
    table_uri: str,
    *,
    version: int | None = None,
    allowed_root_uris: Sequence[str] = (),
) -> DeltaTable:
    """Open a table that the connection may be used for.

    Args:
        hook: the connection.
        table_uri: absolute path or URI.
        version: the version to open; None opens the newest.
        allowed_root_uris: the locations outside the table's root where files of a shallow clone may be. The
            connection must allow these, too.

    Raises:
        ConfigurationError: the table or a root is outside the connection's `allowed_roots`.
        TableNotFoundError, VersionNotFoundError: the table or the version does not exist.
    """
    uri = hook.table_uri(table_uri)
    hook.require_allowed({"allowed_root_uris": list(allowed_root_uris)})
    return _table_class()(
        uri, version, storage_options=dict(hook.storage_options(uri)), allowed_roots=allowed_root_uris
    )


def open_table_if_there(
    hook: DeltawardHook, table_uri: str, *, version: int | None = None, allowed_root_uris: Sequence[str] = ()
) -> DeltaTable | None:
    """Open a table as `open_table` does; None if the table does not exist."""
    try:
        return open_table(hook, table_uri, version=version, allowed_root_uris=allowed_root_uris)
    except TableNotFoundError:
        return None


def create_table(hook: DeltawardHook, table_uri: str, schema: Any, **definition: Any) -> DeltaTable:
    """Create an empty table; see `DeltaTable.create`.

    Raises:
        ConfigurationError: the table is outside the connection's `allowed_roots`.
        TableExistsError: the table already exists.
    """
    uri = hook.table_uri(table_uri)
    created: DeltaTable = _table_class().create(
        uri, schema, storage_options=dict(hook.storage_options(uri)), **definition
    )
    return created


def recorded_work(hook: DeltawardHook, table_uri: str, work_name: str) -> int | None:
    """The highest `work_version` that a table has recorded for a `work_name`; see `recorded_version`.

    Raises:
        ConfigurationError: the table is outside the connection's `allowed_roots`.
    """
    uri = hook.table_uri(table_uri)
    return recorded_version(uri, work_name, storage_options=hook.storage_options(uri))


def _table_class() -> type[DeltaTable]:
    # Imported here, because parsing a DAG imports this module but opens no table.
    table_class: type[DeltaTable] = importlib.import_module("delta_core").DeltaTable
    return table_class
