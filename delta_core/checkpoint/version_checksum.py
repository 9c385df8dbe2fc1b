"""Writing version checksums (PROTOCOL.md, "Version Checksum File").

A wrong checksum makes readers, including this library, report the table as damaged. So every value is
computed from the state of exactly one version, and an existing checksum is never replaced.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow.compute as pc

from delta_core.actions.checkpoint_schema import add_rows
from delta_core.actions.json_codec import action_to_json, metadata_to_json, protocol_to_json
from delta_core.checkpoint.preconditions import replaced_log_error
from delta_core.checkpoint.rows import unexpired_transactions
from delta_core.errors import CorruptLogError, ObjectExistsError
from delta_core.log.checksum import parse_checksum
from delta_core.log.commit_reader import read_commits
from delta_core.log.listing import CommitFile
from delta_core.log.log_path import checksum_path
from delta_core.replay.live_files import LiveFiles
from delta_core.snapshot.commit_time import in_commit_times_since, read_commit_info
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import WriterKind, writer_features

# As in delta-spark, longer lists are omitted.
_MAX_FILES_LISTED = 50
_MAX_TRANSACTIONS_LISTED = 100
_MAX_DOMAINS_LISTED = 100

_MIB = 1 << 20
# delta-spark's bins: it updates the histogram incrementally, so the bins must be equal.
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
# The lower bounds of the bins of deleted rows (PROTOCOL.md, "Deleted Record Counts Histogram Schema").
_DELETED_BINS = (0, *(10**power for power in range(8)), 2**31 - 1)


def write_version_checksum(snapshot: Snapshot, *, txn_id: str | None = None) -> str | None:
    """Write the checksum of a snapshot's version. An existing checksum is kept.

    Reads the live files, unless the snapshot has read them. Besides, two requests, or three if the table has
    in-commit timestamps.

    Args:
        snapshot: the version.
        txn_id: `commitInfo.txnId` of its commit, if known.

    Returns:
        The path; None when the version has a checksum already.

    Raises:
        UnsupportedTableFeatureError: the table uses a feature that does not allow reading its files or
            writing the checksum.
        StaleCommitError: another table has replaced the snapshot's table at this location.
        CorruptLogError: the log is damaged, or the commit lacks its in-commit timestamp.
        StorageError: the checksum was not written, or may have been written.
    """
    snapshot.require_writable(writer_kind=WriterKind.CHECKPOINT, operation="write a version checksum")
    path = checksum_path(snapshot.version)
    data = orjson.dumps(checksum_fields(snapshot, txn_id=txn_id))
    # Never write a checksum that this library could not read.
    parse_checksum(data, path=path)
    replaced = replaced_log_error(snapshot)
    if replaced is not None:
        raise replaced
    try:
        snapshot.store.put_if_absent(path, data)
    except ObjectExistsError:
        return None
    return path


def checksum_fields(snapshot: Snapshot, *, txn_id: str | None = None) -> dict[str, Any]:
    """The JSON fields of a version's checksum, with delta-spark's names.

    Raises:
        CorruptLogError: the log is damaged, or the commit lacks its in-commit timestamp.
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


def _listed(actions: list[Any], max_actions: int) -> list[dict[str, Any]] | None:
    if len(actions) > max_actions:
        return None
    return [fields for action in actions for fields in action_to_json(action).values()]


def _in_commit_timestamp_ms(snapshot: Snapshot) -> int | None:
    since = in_commit_times_since(snapshot.metadata)
    if since is None:
        return None
    # The snapshot's own time does not serve: without an in-commit timestamp it is the file's time.
    file = snapshot.segment.version_file
    commits = (
        ()
        if file is None
        else read_commits(snapshot.store, [CommitFile(version=snapshot.version, info=file)])
    )
    info = read_commit_info(commits[0].data, path=commits[0].path) if commits else None
    if info is None or info.in_commit_timestamp_ms is None:
        raise CorruptLogError(
            f"Version {snapshot.version} of {snapshot.store.uri!r} has no commit time.",
            cause="The table has in-commit timestamps, and the commit lacks its timestamp or was deleted.",
            fix="Restore the table to the version before it.",
        )
    return info.in_commit_timestamp_ms


def _of_deletion_vectors(snapshot: Snapshot) -> dict[str, Any]:
    """The counts of deletion vectors and deleted rows, if the table may have deletion vectors."""
    if "deletionVectors" not in writer_features(snapshot.protocol):
        return {}
    files = snapshot.files
    counts: npt.NDArray[np.int64] = np.zeros(files.num_files, np.int64)
    dvs = 0
    if files.has_deletion_vectors:
        column = files.to_table(["deletion_vector"]).column(0)
        cardinalities = pc.struct_field(column, "cardinality")
        dvs = len(cardinalities) - cardinalities.null_count
        counts = pc.fill_null(cardinalities, 0).to_numpy()
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
        # Not with `weights` of bincount: weights are doubles, and lose digits.
        np.add.at(totals, bins, sizes)
    return {
        "sortedBinBoundaries": list(_SIZE_BINS),
        "fileCounts": counts.tolist(),
        "totalBytes": totals.tolist(),
    }


def _all_files(files: LiveFiles) -> list[dict[str, Any]]:
    actions = []
    for batch in files.batches():
        for row in add_rows(batch).column("add").to_pylist(maps_as_pydicts="strict"):
            present = {name: value for name, value in row.items() if value is not None}
            dv = present.get("deletionVector")
            if dv is not None:
                present["deletionVector"] = {k: v for k, v in dv.items() if v is not None}
            actions.append(present)
    return actions
