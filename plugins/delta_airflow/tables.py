"""Opening the tables of a connection in a task's own process: its roots are checked, its credentials used."""

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
    """A table that the connection may be used for.

    Args:
        hook: the connection.
        table_uri: absolute path or URI.
        version: the newest when None.
        allowed_root_uris: where files of a shallow clone may lie; the connection must allow these, too.

    Raises:
        ConfigurationError: the table or a root lies outside the connection's `allowed_roots`.
        TableNotFoundError, VersionNotFoundError: there is no such table or version.
    """
    uri = hook.table_uri(table_uri)
    hook.require_allowed({"allowed_root_uris": list(allowed_root_uris)})
    return _table_class()(
        uri, version, storage_options=dict(hook.storage_options(uri)), allowed_roots=allowed_root_uris
    )


def open_table_if_there(
    hook: DeltawardHook, table_uri: str, *, version: int | None = None, allowed_root_uris: Sequence[str] = ()
) -> DeltaTable | None:
    """`open_table`, or None where there is no table."""
    try:
        return open_table(hook, table_uri, version=version, allowed_root_uris=allowed_root_uris)
    except TableNotFoundError:
        return None


def create_table(hook: DeltawardHook, table_uri: str, schema: Any, **definition: Any) -> DeltaTable:
    """Create an empty table; see `DeltaTable.create`.

    Raises:
        ConfigurationError: the table lies outside the connection's `allowed_roots`.
        TableExistsError: there is one already.
    """
    uri = hook.table_uri(table_uri)
    created: DeltaTable = _table_class().create(
        uri, schema, storage_options=dict(hook.storage_options(uri)), **definition
    )
    return created


def recorded_work(hook: DeltawardHook, table_uri: str, work_name: str) -> int | None:
    """The highest `work_version` of some named work that a table has recorded; see `recorded_version`.

    Raises:
        ConfigurationError: the table lies outside the connection's `allowed_roots`.
    """
    uri = hook.table_uri(table_uri)
    return recorded_version(uri, work_name, storage_options=hook.storage_options(uri))


def _table_class() -> type[DeltaTable]:
    # Loaded here: parsing a DAG imports this module, and opens no table.
    found: type[DeltaTable] = importlib.import_module("delta_core").DeltaTable
    return found
