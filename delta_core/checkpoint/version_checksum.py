"""Writing version checksums (PROTOCOL.md, "Version Checksum File").

One that is wrong makes readers, ours among them, distrust the table. So everything in it comes from the state
of exactly its version, and none is ever replaced.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow.compute as pc

from delta_core.actions.checkpoint_schema import add_rows
from delta_core.actions.json_codec import action_to_json, metadata_to_json, protocol_to_json
from delta_core.checkpoint.preconditions import other_log
from delta_core.checkpoint.rows import unexpired_transactions
from delta_core.errors import CorruptLogError, ObjectExistsError
from delta_core.log.checksum import parse_checksum
from delta_core.log.commit_reader import read_commits
from delta_core.log.listing import CommitFile
from delta_core.log.log_path import checksum_path
from delta_core.replay.live_files import LiveFiles
from delta_core.snapshot.commit_time import in_commit_times_since, read_commit_info
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import writer_features
from delta_core.table_features.writer_kind import WriterKind

# As delta-spark: longer lists are left out.
_MAX_FILES_LISTED = 50
_MAX_TRANSACTIONS_LISTED = 100
_MAX_DOMAINS_LISTED = 100

_MIB = 1 << 20
# In delta-spark's bins, which it adds to.
_SIZE_BINS = (
    0,
    *(8192 << power for power in range(10)),
    *(
        size * _MIB
        for size in (
            *(8, 12, 16, 20, 24, 28, 32, 36, 40),
            *range(48, 121, 8),
            *(124, 128, 132, 136, 140, 144),
            *range(160, 577, 16),
            *range(640, 1409, 64),
            *range(1536, 2049, 128),
            *range(2304, 4097, 256),
            *(8192 << power for power in range(6)),
        )
    ),
)
# Where the bins of deleted rows begin (PROTOCOL.md, "Deleted Record Counts Histogram Schema").
_DELETED_BINS = (0, *(10**power for power in range(8)), 2**31 - 1)


def write_version_checksum(snapshot: Snapshot, *, txn_id: str | None = None) -> str | None:
    """Write the checksum of a snapshot's version; one that is there stays.

    Reads the live files, where they have not been read. Two requests besides, three where the commit has its
    time.

    Args:
        snapshot: the version.
        txn_id: `commitInfo.txnId` of its commit, if known.

    Returns:
        The path; None when the version has one.

    Raises:
        UnsupportedTableFeatureError: the table's files cannot be told, or writing to it is refused.
        StaleCommitError: the table at this place is no longer the snapshot's.
        CorruptLogError: the log is damaged, or the commit lacks the time that it must carry.
        StorageError: it was not written, or that cannot be told.
    """
    snapshot.require_writable(writer_kind=WriterKind.CHECKPOINT, operation="write a version checksum")
    path = checksum_path(snapshot.version)
    data = orjson.dumps(checksum_fields(snapshot, txn_id=txn_id))
    # What we would not read again is not written.
    parse_checksum(data, path=path)
    replaced = other_log(snapshot)
    if replaced is not None:
        raise replaced
    try:
        snapshot.store.put_if_absent(path, data)
    except ObjectExistsError:
        return None
    return path


def checksum_fields(snapshot: Snapshot, *, txn_id: str | None = None) -> dict[str, Any]:
    """What the checksum of a version says, as JSON fields under the names that delta-spark gives them.

    Raises:
        CorruptLogError: the log is damaged, or the commit lacks the time that it must carry.
    """
    files = snapshot.files
    fields: dict[str, Any] = {
        "txnId": txn_id or None,
        "tableSizeBytes": files.total_bytes,
        "numFiles": files.num_files,
        **_of_deletion_vectors(snapshot),
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": _in_commit_timestamp_ms(snapshot),
        "setTransactions": _listed(unexpired_transactions(snapshot), _MAX_TRANSACTIONS_LISTED),
        "domainMetadata": _listed(list(snapshot.domain_metadata.values()), _MAX_DOMAINS_LISTED),
        "metadata": metadata_to_json(snapshot.metadata),
        "protocol": protocol_to_json(snapshot.protocol),
        "fileSizeHistogram": _sizes(files),
        "allFiles": _all_files(files) if files.num_files <= _MAX_FILES_LISTED else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _listed(actions: list[Any], most: int) -> list[dict[str, Any]] | None:
    if len(actions) > most:
        return None
    return [fields for action in actions for fields in action_to_json(action).values()]


def _in_commit_timestamp_ms(snapshot: Snapshot) -> int | None:
    since = in_commit_times_since(snapshot.metadata)
    if since is None:
        return None
    # Not the snapshot's time, which is the file's where the commit has none.
    file = snapshot.segment.version_file
    own = (
        ()
        if file is None
        else read_commits(snapshot.store, [CommitFile(version=snapshot.version, info=file)])
    )
    info = read_commit_info(own[0].data, path=own[0].path) if own else None
    if info is None or info.in_commit_timestamp_ms is None:
        raise CorruptLogError(
            f"Version {snapshot.version} of {snapshot.store.uri!r} does not say when it was committed.",
            cause="Its table has in-commit timestamps, and the commit has none.",
            fix="Restore the table to the version before it.",
        )
    return info.in_commit_timestamp_ms


def _of_deletion_vectors(snapshot: Snapshot) -> dict[str, Any]:
    """Counts of deletion vectors, where the table may have some."""
    if "deletionVectors" not in writer_features(snapshot.protocol):
        return {}
    files = snapshot.files
    counts: npt.NDArray[np.int64] = np.zeros(files.num_files, np.int64)
    dvs = 0
    if files.has_deletion_vectors:
        column = files.to_table(["deletion_vector"]).column(0)
        rows = pc.struct_field(column, "cardinality")
        dvs = len(rows) - rows.null_count
        counts = pc.fill_null(rows, 0).to_numpy()
    bins = np.searchsorted(_DELETED_BINS, counts, side="right") - 1
    return {
        "numDeletedRecordsOpt": int(counts.sum()),
        "numDeletionVectorsOpt": dvs,
        "deletedRecordCountsHistogramOpt": {
            "deletedRecordCounts": np.bincount(bins, minlength=len(_DELETED_BINS)).tolist()
        },
    }


def _sizes(files: LiveFiles) -> dict[str, list[int]]:
    counts: npt.NDArray[np.int64] = np.zeros(len(_SIZE_BINS), np.int64)
    totals = counts.copy()
    for batch in files.batches(["size_bytes"]):
        sizes = batch.column(0).to_numpy()
        bins = np.searchsorted(_SIZE_BINS, sizes, side="right") - 1
        counts += np.bincount(bins, minlength=len(_SIZE_BINS))
        # Not by weights: those are doubles, and lose digits.
        np.add.at(totals, bins, sizes)
    return {
        "sortedBinBoundaries": list(_SIZE_BINS),
        "fileCounts": counts.tolist(),
        "totalBytes": totals.tolist(),
    }


def _all_files(files: LiveFiles) -> list[dict[str, Any]]:
    found = []
    for batch in files.batches():
        for row in add_rows(batch).column("add").to_pylist(maps_as_pydicts="strict"):
            present = {name: value for name, value in row.items() if value is not None}
            dv = present.get("deletionVector")
            if dv is not None:
                present["deletionVector"] = {k: v for k, v in dv.items() if v is not None}
            found.append(present)
    return found
