"""Reading the contents of a checkpoint, and the check whether the checkpoint may be deleted.

A checkpoint may be the only record of the versions before it. Another writer may replace it at any time with
a checkpoint of the same name. So a checkpoint is deleted only when it is still the one that this process
wrote and the table can be read without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import Metadata, Protocol
from delta_core.errors import ObjectNotFoundError
from delta_core.log.checkpoint_part import CheckpointPart, damaged_checkpoint
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.listing import CheckpointFiles, list_log
from delta_core.replay.checkpoint_chunk import deletion_vectors
from delta_core.replay.state import (
    checkpoint_domains,
    checkpoint_protocol_and_metadata,
    checkpoint_transactions,
)
from delta_core.replay.tail import live_batch
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.cached import without_cache
from delta_core.storage.log_store import LogStore, ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorTotals:
    """Sums over the deletion vectors of files, to compare two sets of deletion vectors.

    Attributes:
        count: number of files with a deletion vector.
        cardinality: total number of deleted rows.
        size_bytes: total size of the deletion vectors.
        offsets: sum of the offsets of the deletion vectors in their files.
    """

    count: int = 0
    cardinality: int = 0
    size_bytes: int = 0
    offsets: int = 0

    @classmethod
    def of(cls, dvs: pa.StructArray) -> DeletionVectorTotals:
        """The totals of a column of DELETION_VECTOR_TYPE; null means a file without a deletion vector."""
        sums = {
            name: pc.sum(pc.struct_field(dvs, name)).as_py() or 0
            for name in ("cardinality", "size_in_bytes", "offset")
        }
        return cls(
            count=len(dvs) - pc.struct_field(dvs, "storage_type").null_count,
            cardinality=sums["cardinality"],
            size_bytes=sums["size_in_bytes"],
            offsets=sums["offset"],
        )

    def __add__(self, other: DeletionVectorTotals) -> DeletionVectorTotals:
        return DeletionVectorTotals(
            count=self.count + other.count,
            cardinality=self.cardinality + other.cardinality,
            size_bytes=self.size_bytes + other.size_bytes,
            offsets=self.offsets + other.offsets,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of a checkpoint, as read from its files.

    Attributes:
        num_rows: number of actions of every kind, including those in sidecars.
        num_sidecar_actions: number of actions in sidecars.
        num_files: number of files of the checkpoint, including sidecars.
        size_bytes: total size of the checkpoint's files.
        num_add_files: number of live files.
        total_bytes: total size of the live files.
        dvs: totals of the live files' deletion vectors.
        transactions: versions by application id.
        domains: configurations by domain.
    """

    protocol: Protocol | None
    metadata: Metadata | None
    num_rows: int
    num_sidecar_actions: int
    num_files: int
    size_bytes: int
    num_add_files: int
    total_bytes: int
    dvs: DeletionVectorTotals
    transactions: Mapping[str, int]
    domains: Mapping[str, str]

    def difference(self, snapshot: Snapshot) -> str | None:
        """The first difference between the checkpoint and the snapshot's state; None when they agree.

        Tombstones and application transactions expire, so two valid checkpoints may differ in them. The
        checkpoint may lack expiring transactions; any other difference is reported.
        """
        files = snapshot.files
        if (self.num_add_files, self.total_bytes) != (files.num_files, files.total_bytes):
            return (
                f"The version has {files.num_files} files of {files.total_bytes} bytes, the checkpoint "
                f"{self.num_add_files} files of {self.total_bytes} bytes."
            )
        if self.protocol != snapshot.protocol:
            return f"The protocol of the checkpoint is {self.protocol}, of the version {snapshot.protocol}."
        if self.metadata != snapshot.metadata:
            return "The metadata of the checkpoint differs from the metadata of the version."
        dvs = deletion_vector_totals(snapshot)
        if self.dvs != dvs:
            return f"The deletion vectors of the version have the totals {dvs}, of the checkpoint {self.dvs}."
        return self._of_transactions(snapshot) or self._of_domains(snapshot)

    def _of_transactions(self, snapshot: Snapshot) -> str | None:
        expire = snapshot.properties.set_transaction_retention_ms is not None
        unmatched = dict(self.transactions)
        for name, expected in snapshot.transactions.items():
            version = unmatched.pop(name, None)
            may_lack = expire and expected.last_updated_ms is not None
            if version != expected.version and not (version is None and may_lack):
                return (
                    f"The application {name!r} has the version {expected.version} in the table, {version} "
                    "in the checkpoint."
                )
        if not unmatched:
            return None
        return (
            f"The checkpoint has the application {next(iter(unmatched))!r}, which the version does not have."
        )

    def _of_domains(self, snapshot: Snapshot) -> str | None:
        expected = {name: domain.configuration for name, domain in snapshot.domain_metadata.items()}
        if self.domains == expected:
            return None
        differing = sorted(
            name for name in {*expected, *self.domains} if expected.get(name) != self.domains.get(name)
        )
        return f"The domain metadata of {', '.join(differing)} differs from the version's."


def deletion_vector_totals(snapshot: Snapshot) -> DeletionVectorTotals:
    """The totals of the deletion vectors of a version's live files.

    Decodes the column `deletion_vector`, unless the version is known to have no deletion vectors.
    """
    total = DeletionVectorTotals()
    if snapshot.files.has_deletion_vectors:
        for batch in snapshot.files.batches(["deletion_vector"]):
            total += DeletionVectorTotals.of(batch.column(0))
    return total


def read_contents(store: LogStore, files: CheckpointFiles, *, decode_all: bool = False) -> Contents:
    """Read a checkpoint: its footers and a few columns. Bypasses the cache, which may hold an older file.

    Args:
        store: the table's store.
        files: the checkpoint's files.
        decode_all: decode all columns, not only a few; for a checkpoint that another writer wrote.

    Raises:
        CorruptLogError: the checkpoint cannot be read.
    """
    reader = CheckpointReader.open(without_cache(store), files)
    if decode_all:
        for part in {part.path: part for part in (*reader.parts, *reader.file_parts)}.values():
            part.decode_all()
    protocol, metadata = checkpoint_protocol_and_metadata(reader)
    inline = live_batch(reader.json_fields("add"))
    count, total = inline.num_rows, pc.sum(inline.column("size_bytes")).as_py() or 0
    dvs = DeletionVectorTotals.of(inline.column("deletion_vector"))
    for part in reader.file_parts:
        for group in part.row_groups_with("add"):
            for rows in part.stream(group, "add", ["path", "size"]):
                count += len(rows) - pc.struct_field(rows, "path").null_count
                total += pc.sum(pc.struct_field(rows, "size")).as_py() or 0
            if part.present_rows(group, "add.deletionVector.storageType") != 0:
                for rows in part.stream(group, "add", ["deletionVector"]):
                    dvs += DeletionVectorTotals.of(_deletion_vectors(rows, part))
    sidecars = reader.file_parts[len(reader.parts) :]
    num_sidecar_actions = sum(part.metadata.num_rows for part in sidecars)
    return Contents(
        protocol=protocol,
        metadata=metadata,
        num_rows=reader.num_json_actions
        + sum(part.metadata.num_rows for part in reader.parts)
        + num_sidecar_actions,
        num_sidecar_actions=num_sidecar_actions,
        num_files=len(files.parts) + len(sidecars),
        size_bytes=sum(info.size_bytes for info in files.parts) + sum(part.size_bytes for part in sidecars),
        num_add_files=count,
        total_bytes=total,
        dvs=dvs,
        transactions={name: item.version for name, item in checkpoint_transactions(reader).items()},
        domains={name: item.configuration for name, item in checkpoint_domains(reader).items()},
    )


def _deletion_vectors(rows: pa.StructArray, part: CheckpointPart) -> pa.StructArray:
    try:
        return deletion_vectors(pc.struct_field(rows, "deletionVector"))
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise damaged_checkpoint(part.path, f"The column add.deletionVector is invalid: {error}.") from error


def latest_version_without(store: LogStore, path: str) -> int | None:
    """The newest version that can be read without the checkpoint at `path`. One listing.

    -1 when the log holds no commit and no other checkpoint; None when commits are missing without the
    checkpoint.
    """
    listing = list_log(store)
    others = [item.version for item in listing.checkpoints if path not in item.names]
    commits = [commit.version for commit in listing.commits]
    latest = max([*others, *commits], default=-1)
    after = max(others, default=-1)
    return latest if sum(version > after for version in commits) == latest - after else None


def delete_if_unchanged(store: LogStore, info: ObjectInfo) -> bool:
    """Delete an object if it has not changed since `info` was read. Two requests.

    Returns:
        False when the object was replaced or deleted.
    """
    try:
        current = store.head(info.path)
    except ObjectNotFoundError:
        return False
    if current != info or current.etag != info.etag:
        return False
    store.delete(info.path)
    return True
