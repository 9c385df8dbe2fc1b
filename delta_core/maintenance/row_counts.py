"""Files as actions that say how many rows each has, where the log has left that out.

A checkpoint may hold no statistics (`delta.checkpoint.writeStatsAsJson`, `writeStatsAsStruct`), and a commit
that adds such a file again must say the number all the same: where ids are given out by it, of a file that
has a deletion vector, and in a table that is compatible with Iceberg. The file's footer knows it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import AddFile, Metadata, Protocol
from delta_core.deletion_vectors.file_update import count_records, physical_records
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import parallel
from delta_core.table_features.iceberg_compat import active_compatibility
from delta_core.transaction.file_actions import add_actions

_ABSOLUTE = "^(/|[A-Za-z][A-Za-z0-9+.-]*:)"


def counted_adds(store: LogStore, files: pa.Table, *, access: DataAccess = TABLE_ONLY) -> list[AddFile]:
    """Live files (rows of LIVE_FILE_SCHEMA) as actions that count their rows; dataChange is false.

    Cost: two or three small reads of each file whose statistics do not count them, side by side on a remote
    store.

    Raises:
        MissingDataFileError, InvalidTableError, PathEscapeError: a file's footer cannot be read.
    """
    adds = list(add_actions(files, data_change=False))
    return _counted(store, adds, origins=adds, access=access)


def with_needed_counts(
    store: LogStore,
    adds: Sequence[AddFile],
    *,
    protocol: Protocol,
    metadata: Metadata,
    origins: Sequence[AddFile] | None = None,
    access: DataAccess = TABLE_ONLY,
) -> list[AddFile]:
    """Files to be added, with their rows where a commit to a table of this definition has to say them.

    Args:
        store: where the files are.
        adds: to be committed.
        protocol, metadata: of the table after the commit.
        origins: for each of them the file in `store` that it is a copy of; they are there themselves if None.
        access: where besides the store they may be.

    Cost and errors as of `counted_adds`, for those that lack what they need.
    """
    all_say = bool(active_compatibility(protocol, metadata))
    gives_ids = "rowTracking" in (protocol.writer_features or ())
    needed = [
        all_say or add.deletion_vector is not None or (gives_ids and add.base_row_id is None) for add in adds
    ]
    return _counted(store, adds, origins=adds if origins is None else origins, access=access, needed=needed)


def uncounted_adds(files: pa.Table, *, without: Container[str]) -> list[AddFile]:
    """Those of some live files whose rows the log does not count, but for some paths; dataChange is false."""
    adds = add_actions(files, data_change=False)
    return [add for add in adds if add.path not in without and physical_records(add) is None]


def uncounted_paths(files: pa.Table) -> Iterator[str]:
    """Which of some live files `counted_adds` opens: the absolute paths; others are in the table anyway."""
    absolute = files.filter(pc.match_substring_regex(files["path"], _ABSOLUTE))
    for add in add_actions(absolute, data_change=False):
        if physical_records(add) is None:
            yield add.path


def _counted(
    store: LogStore,
    adds: Sequence[AddFile],
    *,
    origins: Sequence[AddFile],
    access: DataAccess,
    needed: Iterable[bool] | None = None,
) -> list[AddFile]:
    counted = list(adds)
    wanted = [True] * len(counted) if needed is None else needed
    lacking = [
        index for index, wants in enumerate(wanted) if wants and physical_records(counted[index]) is None
    ]
    reads = [partial(count_records, store, origins[index], access=access) for index in lacking]
    for index, rows in zip(lacking, parallel(store, reads), strict=True):
        add = counted[index]
        counted[index] = replace(add, stats=_with_count(add.stats, rows))
    return counted


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
