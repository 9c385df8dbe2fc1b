"""What a checkpoint holds, and whether it may be deleted.

A checkpoint may be all that is left of the versions before it, and another writer may have put its own
under the same name at any time. So one is deleted only while it is known to be ours, and the log is read
without it.
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
    """The deletion vectors of files, summed: no two sets of vectors that a mistake makes have them equal.

    Attributes:
        count: how many files have one.
        cardinality, size_bytes, offsets: their rows, their bytes and where they begin, together.
    """

    count: int = 0
    cardinality: int = 0
    size_bytes: int = 0
    offsets: int = 0

    @classmethod
    def of(cls, dvs: pa.StructArray) -> DeletionVectorTotals:
        """Those of a column of DELETION_VECTOR_TYPE, null where a file has none."""
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
    """What a checkpoint was found to hold.

    Attributes:
        num_rows: its actions of every kind, those in sidecars included.
        num_sidecar_actions: those in sidecars.
        num_files: how many files it consists of.
        size_bytes: their sizes together.
        num_add_files, total_bytes: the live files, and their sizes together.
        vectors: their deletion vectors.
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
        """Where it is not the snapshot's state, or None.

        Tombstones and application transactions expire, so two sound checkpoints may differ in them: one may
        lack what expires, and no more.
        """
        files = snapshot.files
        if (self.num_add_files, self.total_bytes) != (files.num_files, files.total_bytes):
            return (
                f"Expected {files.num_files} files of {files.total_bytes} bytes, read back "
                f"{self.num_add_files} of {self.total_bytes}."
            )
        if self.protocol != snapshot.protocol:
            return f"Its protocol is {self.protocol}, and the version's is {snapshot.protocol}."
        if self.metadata != snapshot.metadata:
            return "Its metadata is not the version's."
        dvs = deletion_vector_totals(snapshot)
        if self.dvs != dvs:
            return f"Expected deletion vectors of {dvs}, read back {self.dvs}."
        return self._of_transactions(snapshot) or self._of_domains(snapshot)

    def _of_transactions(self, snapshot: Snapshot) -> str | None:
        expire = snapshot.properties.set_transaction_retention_ms is not None
        found = dict(self.transactions)
        for name, wanted in snapshot.transactions.items():
            version = found.pop(name, None)
            may_lack = expire and wanted.last_updated_ms is not None
            if version != wanted.version and not (version is None and may_lack):
                return f"Application {name!r} is at version {wanted.version}, read back {version}."
        return f"It has the application {next(iter(found))!r}, the version has not." if found else None

    def _of_domains(self, snapshot: Snapshot) -> str | None:
        wanted = {name: domain.configuration for name, domain in snapshot.domain_metadata.items()}
        if self.domains == wanted:
            return None
        other = sorted(
            name for name in {*wanted, *self.domains} if wanted.get(name) != self.domains.get(name)
        )
        return f"The domain metadata of {', '.join(other)} is not the version's."


def deletion_vector_totals(snapshot: Snapshot) -> DeletionVectorTotals:
    """The deletion vectors of a version's live files. Decodes their column if there may be one."""
    total = DeletionVectorTotals()
    if snapshot.files.has_deletion_vectors:
        for batch in snapshot.files.batches(["deletion_vector"]):
            total += DeletionVectorTotals.of(batch.column(0))
    return total


def read_contents(store: LogStore, files: CheckpointFiles, *, decode_all: bool = False) -> Contents:
    """Read a checkpoint: its footers and a few columns; past a cache, which may have another one.

    Args:
        store: the table's store.
        files: the checkpoint's.
        decode_all: decode the other columns, too; for one that somebody else has written.

    Raises:
        CorruptLogError: it cannot be read.
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
        raise damaged_checkpoint(part.path, f"add.deletionVector: {error}") from error


def latest_without(store: LogStore, path: str) -> int | None:
    """The newest version that the log is read to without a checkpoint; one listing.

    -1 when nothing else is in the log, None when versions are missing then.
    """
    listing = list_log(store)
    others = [item.version for item in listing.checkpoints if path not in item.names]
    commits = [commit.version for commit in listing.commits]
    latest = max([*others, *commits], default=-1)
    after = max(others, default=-1)
    return latest if sum(version > after for version in commits) == latest - after else None


def delete_unchanged(store: LogStore, info: ObjectInfo) -> bool:
    """Delete an object if it is still the one that was seen. Two requests.

    Returns:
        False when it is another one now, or gone.
    """
    try:
        found = store.head(info.path)
    except ObjectNotFoundError:
        return False
    if found != info or found.etag != info.etag:
        return False
    store.delete(info.path)
    return True
