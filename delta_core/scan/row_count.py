"""The number of rows and the partitions of a version, from its log."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow.compute as pc

from delta_core.deletion_vectors.file_update import rows_in_footer
from delta_core.scan.partition_pruning import typed_partitions
from delta_core.scan.scan import Scan
from delta_core.scan.statistics import parse_statistics
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import parallel


def count_rows(snapshot: Snapshot, *, allowed_roots: tuple[LogStore, ...] = ()) -> int:
    """The number of rows of a version, without those that deletion vectors delete.

    Cost: two or three small reads of each file without a row count, in parallel on a remote store.

    Raises:
        UnsupportedTableFeatureError: the table cannot be read.
        MissingDataFileError, InvalidTableError, PathEscapeError: a file's footer cannot be read.
    """
    files = Scan(snapshot, allowed_roots=allowed_roots).files(["path", "stats", "deletion_vector"])
    records = parse_statistics(files.column("stats"), {}).num_records
    deleted = pc.sum(pc.struct_field(files.column("deletion_vector"), "cardinality")).as_py() or 0
    known = pc.sum(records).as_py() or 0
    access = DataAccess(allowed_roots=allowed_roots, clock=snapshot.clock)
    uncounted = files.column("path").filter(pc.is_null(records)).to_pylist()
    places = [access.locate(path, store=snapshot.store) for path in uncounted]
    reads = [partial(rows_in_footer, place, access=access) for place in places]
    return int(known + sum(parallel(snapshot.store, reads)) - deleted)


def live_partitions(snapshot: Snapshot, scan: Scan) -> list[dict[str, Any]]:
    """The partitions of the files of a scan of a snapshot, in the order in which the log first has them.

    Each is a dictionary of the values of the partition columns, in their types. Empty for a table without
    partition columns.
    """
    names = snapshot.partition_columns
    if not names:
        return []
    files = scan.files(["partition_values"])
    values = typed_partitions(files, snapshot.schema, names, mapping=snapshot.column_mapping)
    partitions: list[dict[str, Any]] = (
        values.group_by(list(names), use_threads=False).aggregate([]).to_pylist()
    )
    return partitions
