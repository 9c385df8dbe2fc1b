"""Adds row counts to `add` actions whose statistics have none.

A checkpoint may lack statistics (`delta.checkpoint.writeStatsAsJson`, `writeStatsAsStruct`). A commit that
adds such a file again needs the file's row count in some cases: to assign row ids, for a file with a deletion
vector, and in a table with Iceberg compatibility. The count is then read from the file's footer.
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
    """Live files (rows of LIVE_FILE_SCHEMA) as `add` actions with row counts; `dataChange` is false.

    Cost: two or three small reads of each file without a row count, in parallel on a remote store.

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
    """The `add` actions, with row counts for those that need one in a table of this definition.

    Args:
        store: the store of the files.
        adds: the actions to commit.
        protocol, metadata: protocol and metadata of the table after the commit.
        origins: for each action, the file in `store` that its file is a copy of. None: the files themselves
            are in `store`.
        access: the roots outside the store that the files may be in.

    Cost and errors: as `counted_adds`, for the files that need a row count and have none.
    """
    all_need_counts = bool(active_compatibility(protocol, metadata))
    assigns_row_ids = "rowTracking" in (protocol.writer_features or ())
    needed = [
        all_need_counts or add.deletion_vector is not None or (assigns_row_ids and add.base_row_id is None)
        for add in adds
    ]
    return _counted(store, adds, origins=adds if origins is None else origins, access=access, needed=needed)


def uncounted_adds(files: pa.Table, *, without: Container[str]) -> list[AddFile]:
    """The live files without a row count in the log, except those with paths in `without`.

    `dataChange` of the actions is false.
    """
    adds = add_actions(files, data_change=False)
    return [add for add in adds if add.path not in without and physical_records(add) is None]


def uncounted_paths(files: pa.Table) -> Iterator[str]:
    """The absolute paths of the files that `counted_adds` would open; relative paths are in the table."""
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
    needs_count = [True] * len(counted) if needed is None else needed
    missing = [
        index for index, needs in enumerate(needs_count) if needs and physical_records(counted[index]) is None
    ]
    reads = [partial(count_records, store, origins[index], access=access) for index in missing]
    for index, rows in zip(missing, parallel(store, reads), strict=True):
        add = counted[index]
        counted[index] = replace(add, stats=_with_count(add.stats, rows))
    return counted


def _with_count(stats: str | None, rows: int) -> str:
    """The statistics with a row count. The rest of the JSON text is not parsed, so that no digit is lost."""
    text = (stats or "").strip()
    try:
        parsed = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict) or not parsed or "numRecords" in parsed:
        return f'{{"numRecords":{rows}}}'
    return f'{{"numRecords":{rows},{text[1:]}'
