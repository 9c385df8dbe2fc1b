"""Live files whose rows have no ids, as the `add` actions that give them ids."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import AddFile
from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.maintenance.row_counts import counted_adds
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY, DataAccess

_ROW_ID_COLUMNS = ("base_row_id", "default_row_commit_version")


def lacks_row_ids(files: pa.Table) -> pa.ChunkedArray:
    """Whether each file lacks a base row id or a default row commit version."""
    first, second = (pc.is_null(files[name]) for name in _ROW_ID_COLUMNS)
    return pc.or_(first, second)


def files_without_row_ids(
    snapshot: Snapshot, *, limit: int, access: DataAccess = TABLE_ONLY
) -> list[AddFile]:
    """At most `limit` live files without row ids, as in the log except for `dataChange`, which is false.

    A file whose statistics have no row count is opened, with two or three small reads.

    Args:
        snapshot: the table; its list of live files is read.
        limit: the most files to return.
        access: the places outside the table where its files may be.

    Raises:
        MissingDataFileError, InvalidTableError, PathEscapeError: a file's footer cannot be read.
    """
    unnumbered = lacks_row_ids(snapshot.files.to_table(list(_ROW_ID_COLUMNS)))
    if not pc.any(unnumbered).as_py():
        return []
    files = snapshot.files.to_table(LIVE_FILE_SCHEMA.names).filter(unnumbered).slice(0, limit)
    return counted_adds(snapshot.store, files, access=access)
