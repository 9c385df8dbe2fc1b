"""Live files whose rows have no ids, as the actions that give them some."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import AddFile
from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.maintenance.row_counts import counted_adds
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY, DataAccess

_NUMBERS = ("base_row_id", "default_row_commit_version")


def is_unnumbered(files: pa.Table) -> pa.ChunkedArray:
    """Whether each of some files lacks ids for its rows, or the version that they came with."""
    first, second = (pc.is_null(files[name]) for name in _NUMBERS)
    return pc.or_(first, second)


def unnumbered_files(snapshot: Snapshot, *, limit: int, access: DataAccess = TABLE_ONLY) -> list[AddFile]:
    """Some of the live files without numbers, as they are in the log but for `dataChange`, which is false.

    Files whose statistics do not say how many rows they have are opened: two or three small reads each.

    Args:
        snapshot: the table; its list of live files is read.
        limit: no more than so many files.
        access: where besides the table its files may be.

    Raises:
        MissingDataFileError, InvalidTableError, PathEscapeError: a file's footer cannot be read.
    """
    lacking = is_unnumbered(snapshot.files.to_table(list(_NUMBERS)))
    if not pc.any(lacking).as_py():
        return []
    files = snapshot.files.to_table(LIVE_FILE_SCHEMA.names).filter(lacking).slice(0, limit)
    return counted_adds(snapshot.store, files, access=access)
