"""Live files whose rows have no ids, as the actions that give them some."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import AddFile
from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.deletion_vectors.file_update import count_records, physical_records
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.transaction.file_actions import add_actions

_ABSOLUTE = "^(/|[A-Za-z][A-Za-z0-9+.-]*:)"
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
    return list(counted_adds(snapshot.store, files, access=access))


def counted_adds(
    store: LogStore, files: pa.Table, *, data_change: bool = False, access: DataAccess = TABLE_ONLY
) -> Iterator[AddFile]:
    """Some files of a version as actions that say how many rows each has.

    Ids are given out by that number, a file with a deletion vector must say it, and so must every file of a
    table that is compatible with Iceberg. Those whose statistics do not are opened, which a checkpoint may
    have left out (`delta.checkpoint.writeStatsAsJson`): two or three small reads each.

    Raises:
        MissingDataFileError, InvalidTableError, PathEscapeError: a file's footer cannot be read.
    """
    for add in add_actions(files, data_change=data_change):
        if physical_records(add) is not None:
            yield add
            continue
        yield replace(add, stats=_with_count(add.stats, count_records(store, add, access=access)))


def uncounted_paths(files: pa.Table) -> Iterator[str]:
    """Which of some live files `counted_adds` opens: the absolute paths; others are in the table anyway."""
    absolute = files.filter(pc.match_substring_regex(files["path"], _ABSOLUTE))
    for add in add_actions(absolute, data_change=False):
        if physical_records(add) is None:
            yield add.path


def _with_count(stats: str | None, rows: int) -> str:
    """Statistics that say how many rows there are; their other text stays, so that no digit is lost."""
    text = (stats or "").strip()
    try:
        known = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        known = None
    if not isinstance(known, dict) or not known or "numRecords" in known:
        return f'{{"numRecords":{rows}}}'
    return f'{{"numRecords":{rows},{text[1:]}'
