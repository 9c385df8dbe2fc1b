"""Which versions a table has, from names in its log alone, and how far named work on it has come."""

from __future__ import annotations

from collections.abc import Mapping

from delta_airflow.operators.provenance import work_app_id
from delta_core.errors import TableNotFoundError
from delta_core.jobs.job_spec import TableRef
from delta_core.log.log_path import CHECKPOINT_KINDS, LOG_DIRECTORY, LogFileKind, LogPath, version_prefix
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store, options_for
from delta_core.storage.uri import canonical_table_uri


def latest_version_from(
    table_uri: str, version: int, *, storage_options: Mapping[str, str] | None = None
) -> int | None:
    """The table's latest version, or None when it is below `version` or there is no table.

    Cost: one listing of the log from `version` on.

    Raises:
        DeltaError: the store cannot be opened or listed.
    """
    return latest_version_in(
        open_store(table_uri, storage_options=options_for(table_uri, storage_options)), version
    )


def latest_version_in(store: LogStore, version: int) -> int | None:
    """The same of a table whose store is open.

    Raises:
        DeltaError: the store cannot be listed.
    """
    listed = store.list_directory(LOG_DIRECTORY, start_after=version_prefix(version))
    found = (LogPath.parse(info.path) for info in listed)
    # A checkpoint counts, too: the commit it stands for may have been cleaned up.
    kinds = {LogFileKind.COMMIT, *CHECKPOINT_KINDS}
    return max((entry.version for entry in found if entry and entry.kind in kinds), default=None)


def recorded_version(
    table_uri: str,
    work_name: str,
    *,
    table_id: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> int | None:
    """The highest `work_version` that operators with this `work_name` have applied to a table.

    Reads the log's newest checkpoint and the commits after it, no list of files.

    Args:
        table_uri: the table, spelled in any way.
        work_name: as given to the operator.
        table_id: as given to the operator.
        storage_options: for the store; a local table takes none of them.

    Returns:
        The version; None when there is no table, or none of this work in it.

    Raises:
        DeltaError: the table cannot be opened.
    """
    store = open_store(table_uri, storage_options=options_for(table_uri, storage_options))
    try:
        snapshot = Snapshot.load(store)
    except TableNotFoundError:
        return None
    app_id = work_app_id(work_name, TableRef(uri=canonical_table_uri(table_uri), id=table_id))
    found = snapshot.transactions.get(app_id)
    return None if found is None else found.version
