"""The latest version of a table, from file names in its log only, and the recorded version of named work."""

from __future__ import annotations

from collections.abc import Mapping

from delta_airflow.operators.provenance import work_app_id
from delta_core.errors import TableNotFoundError
from delta_core.jobs import TableRef
from delta_core.log.log_path import CHECKPOINT_KINDS, LOG_DIRECTORY, LogFileKind, LogPath, version_prefix
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import LogStore, canonical_table_uri, open_store, options_for


def latest_version_from(
    table_uri: str, version: int, *, storage_options: Mapping[str, str] | None = None
) -> int | None:
    """The table's latest version; None if it is below `version` or the table does not exist.

    Costs one listing of the log, starting at `version`.

    Raises:
        DeltaError: the store cannot be opened or listed.
    """
    return latest_version_in(
        open_store(table_uri, storage_options=options_for(table_uri, storage_options)), version
    )


def latest_version_in(store: LogStore, version: int) -> int | None:
    """The same as `latest_version_from`, for a table whose store is open.

    Raises:
        DeltaError: the store cannot be listed.
    """
    listed = store.list_directory(LOG_DIRECTORY, start_after=version_prefix(version))
    entries = (LogPath.parse(info.path) for info in listed)
    # A checkpoint counts, too: log cleanup may have deleted the commit of its version.
    kinds = {LogFileKind.COMMIT, *CHECKPOINT_KINDS}
    return max((entry.version for entry in entries if entry and entry.kind in kinds), default=None)


def recorded_version(
    table_uri: str,
    work_name: str,
    *,
    table_id: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> int | None:
    """The highest `work_version` that operators with this `work_name` have applied to a table.

    Reads the newest checkpoint and the commits after it, but not the list of files.

    Args:
        table_uri: path or URI of the table, in any spelling.
        work_name: as given to the operator.
        table_id: as given to the operator.
        storage_options: options of the store. They are ignored for a local table.

    Returns:
        The version; None if the table does not exist or has not recorded this work.

    Raises:
        DeltaError: the table cannot be opened.
    """
    store = open_store(table_uri, storage_options=options_for(table_uri, storage_options))
    try:
        snapshot = Snapshot.load(store)
    except TableNotFoundError:
        return None
    app_id = work_app_id(work_name, TableRef(uri=canonical_table_uri(table_uri), id=table_id))
    recorded = snapshot.transactions.get(app_id)
    return None if recorded is None else recorded.version
