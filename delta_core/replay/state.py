"""A table's state at a version: the checkpoint's columns and the changes of later commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.actions.arrow_schema import DELETION_VECTOR_TYPE, STRING_MAP, TOMBSTONE_SCHEMA
from delta_core.actions.json_codec import action_from_json, metadata_from_json, protocol_from_json
from delta_core.log.checkpoint_part import CheckpointPart, damaged_checkpoint
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.commit_reader import CommitData
from delta_core.replay.checkpoint_chunk import checkpoint_chunks, deletion_vectors
from delta_core.replay.column_types import as_type
from delta_core.replay.distinct_files import distinct_files
from delta_core.replay.file_chunk import FileChunk, MemoryChunk
from delta_core.replay.live_files import LiveFiles, matching_rows, may_be_escaped, path_spellings
from delta_core.replay.map_strings import plain_map
from delta_core.replay.tail import Fields, FileKey, Tail, live_batch, replay_tail, tombstone_batch

_REMOVE_LEAVES = {
    "path": "path",
    "deletion_timestamp_ms": "deletionTimestamp",
    "partition_values": "partitionValues",
    "size_bytes": "size",
    "deletion_vector": "deletionVector",
    "extended_file_metadata": "extendedFileMetadata",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstones:
    """Removed files: those of a checkpoint, which are read on demand, and those of later commits."""

    checkpoint: CheckpointReader | None = None
    touched: frozenset[FileKey] = frozenset()
    removes: Mapping[FileKey, Fields] = field(default_factory=dict)

    def apply(self, tail: Tail) -> Tombstones:
        """The tombstones after the later commits in `tail`."""
        removes = {key: value for key, value in self.removes.items() if key not in tail.adds}
        return Tombstones(
            checkpoint=self.checkpoint,
            touched=self.touched.union(tail.adds, tail.removes),
            removes={**removes, **tail.removes},
        )

    def since(self, since_ms: int, live: LiveFiles) -> pa.Table:
        """The files that were removed at this time or later, as TOMBSTONE_SCHEMA; see `batches`."""
        recent = []
        for batch in self.batches(live):
            # A remove without a time counts as removed at time 0.
            times = pc.fill_null(batch.column("deletion_timestamp_ms"), 0)
            rows = batch.filter(pc.greater_equal(times, since_ms))
            if rows.num_rows:
                recent.append(rows)
        return pa.Table.from_batches(recent, schema=TOMBSTONE_SCHEMA)

    def batches(self, live: LiveFiles) -> Iterator[pa.RecordBatch]:
        """All removed files, including expired ones, as batches of TOMBSTONE_SCHEMA.

        Args:
            live: the live files of the same version. A checkpoint that also lists one of them as removed is
                wrong or damaged. Its readers keep reading the file, so the file counts as live.

        Raises:
            CorruptLogError: the checkpoint cannot be decoded.
        """
        keys = set(self.touched)
        spellings: pa.Array | None = None
        for batch in _checkpoint_removes(self.checkpoint):
            if keys and batch.num_rows:
                # Most checkpoints have no tombstones, so the spellings are computed only on demand.
                spellings = path_spellings(keys) if spellings is None else spellings
                paths, dvs = batch.column("path"), partial(batch.column, "deletion_vector")
                superseded, matched = matching_rows(paths, dvs, keys, spellings)
                mask = np.ones(batch.num_rows, dtype=np.bool_)
                mask[superseded] = False
                unmatched = {key for key in keys - matched if may_be_escaped(key)}
                if unmatched:
                    mask[matching_rows(paths, dvs, unmatched, None)[0]] = False
                batch = batch.filter(pa.array(mask))
            is_live = live.rows_among(batch.column("path"), partial(batch.column, "deletion_vector"))
            if is_live is not None:
                batch = batch.filter(pa.array(~is_live))
            if batch.num_rows:
                yield batch
        if self.removes:
            yield tombstone_batch(self.removes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayState:
    """The complete state of a version. `domain_metadata` contains no removed domains."""

    protocol: Protocol
    metadata: Metadata
    transactions: Mapping[str, SetTransaction]
    domain_metadata: Mapping[str, DomainMetadata]
    files: LiveFiles
    tombstones: Tombstones

    def apply(self, tail: Tail) -> ReplayState:
        """The state after the later commits in `tail`."""
        return ReplayState(
            protocol=tail.protocol or self.protocol,
            metadata=tail.metadata or self.metadata,
            transactions={**self.transactions, **tail.transactions},
            domain_metadata=_live_domains({**self.domain_metadata, **tail.domain_metadata}),
            files=self.files.apply(tail),
            tombstones=self.tombstones.apply(tail),
        )


def build_state(
    *, checkpoint: CheckpointReader | None, tail: Tail, protocol: Protocol, metadata: Metadata
) -> ReplayState:
    """The state of a checkpoint (or of an empty table) and the commits after it.

    Raises:
        CorruptLogError: the checkpoint cannot be decoded.
    """
    chunks = list(_file_chunks(checkpoint))
    hashes, path = distinct_files(chunks)
    if checkpoint is not None and path is not None:
        raise damaged_checkpoint(checkpoint.files.names[0], f"It lists the file {path!r} twice.")
    base = ReplayState(
        protocol=protocol,
        metadata=metadata,
        transactions=checkpoint_transactions(checkpoint),
        domain_metadata=checkpoint_domains(checkpoint),
        files=LiveFiles.of_chunks(chunks, hashes),
        tombstones=Tombstones(checkpoint=checkpoint),
    )
    return base.apply(tail)


def checkpoint_protocol_and_metadata(
    checkpoint: CheckpointReader,
) -> tuple[Protocol | None, Metadata | None]:
    """Protocol and metadata of a checkpoint. Reads only the row groups that hold them.

    Raises:
        CorruptLogError: the checkpoint is damaged, or holds two actions of one kind.
    """
    actions = {kind: list(checkpoint.actions(kind)) for kind in ("protocol", "metaData")}
    for kind, rows in actions.items():
        if len(rows) > 1:
            raise damaged_checkpoint(checkpoint.files.names[0], f"It holds {len(rows)} {kind!r} actions.")
    protocol, metadata = actions["protocol"], actions["metaData"]
    return (
        protocol_from_json(protocol[0]) if protocol else None,
        metadata_from_json(metadata[0]) if metadata else None,
    )


def checkpoint_transactions(checkpoint: CheckpointReader | None) -> dict[str, SetTransaction]:
    """The application transactions in a checkpoint, by application id."""
    if checkpoint is None:
        return {}
    actions = (action_from_json("txn", fields) for fields in checkpoint.actions("txn"))
    return {action.app_id: action for action in actions if isinstance(action, SetTransaction)}


def checkpoint_domains(checkpoint: CheckpointReader | None) -> dict[str, DomainMetadata]:
    """The domain metadata in a checkpoint, by domain."""
    if checkpoint is None:
        return {}
    actions = (action_from_json("domainMetadata", fields) for fields in checkpoint.actions("domainMetadata"))
    return _live_domains({action.domain: action for action in actions if isinstance(action, DomainMetadata)})


MAX_WAITING_COMMITS = 64
"""With this number of waiting commits they are applied to the state, so that their bytes do not pile up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingState:
    """A state and the later commits that have not been applied to it.

    A writer that follows its own appends needs the files of few versions, and applying one commit to the
    columns costs nearly as much as applying ten.

    Attributes:
        base: the state before the waiting commits.
        waiting: the commits, oldest first. They were decoded once before, so applying them does not fail.
    """

    base: ReplayState
    waiting: tuple[CommitData, ...] = ()

    def followed_by(self, commits: Sequence[CommitData]) -> PendingState:
        """The state after later commits, which have been decoded before."""
        waiting = (*self.waiting, *commits)
        extended = PendingState(base=self.base, waiting=waiting)
        return extended.caught_up() if len(waiting) >= MAX_WAITING_COMMITS else extended

    def caught_up(self) -> PendingState:
        """The same state with all waiting commits applied.

        Raises:
            CorruptLogError: a commit is damaged.
        """
        if not self.waiting:
            return self
        return PendingState(base=self.base.apply(replay_tail(self.waiting)))

    @property
    def transactions(self) -> Mapping[str, SetTransaction]:
        """Application transactions by application id. Does not apply file actions."""
        if not self.waiting:
            return self.base.transactions
        return {**self.base.transactions, **replay_tail(self.waiting).transactions}


def _live_domains(domains: Mapping[str, DomainMetadata]) -> dict[str, DomainMetadata]:
    return {name: domain for name, domain in domains.items() if not domain.removed}


def _file_chunks(checkpoint: CheckpointReader | None) -> Iterator[FileChunk]:
    if checkpoint is None:
        return
    inline = checkpoint.json_fields("add")
    if inline:
        yield MemoryChunk(live_batch(inline))
    for part in checkpoint.file_parts:
        for group in part.row_groups_with("add"):
            yield from checkpoint_chunks(part, group)


def _checkpoint_removes(checkpoint: CheckpointReader | None) -> Iterator[pa.RecordBatch]:
    if checkpoint is None:
        return
    inline = checkpoint.json_fields("remove")
    if inline:
        yield tombstone_batch(inline)
    for part in checkpoint.file_parts:
        for group in part.row_groups_with("remove"):
            yield from _removes_of(part, group)


def _removes_of(part: CheckpointPart, group: int) -> Iterator[pa.RecordBatch]:
    present = {name: leaf for name, leaf in _REMOVE_LEAVES.items() if part.has(f"remove.{leaf}")}
    for rows in part.read(group, "remove", list(present.values())):
        yield _removes_batch(part, rows, present)


def _removes_batch(part: CheckpointPart, rows: pa.StructArray, present: Mapping[str, str]) -> pa.RecordBatch:
    try:
        rows.validate(full=True)
        rows = rows.filter(pc.is_valid(pc.struct_field(rows, "path")))
        columns = [
            _remove_column(rows, present[item.name], item.type)
            if item.name in present
            else pa.nulls(len(rows), item.type)
            for item in TOMBSTONE_SCHEMA
        ]
        return pa.RecordBatch.from_arrays(columns, schema=TOMBSTONE_SCHEMA)
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise damaged_checkpoint(part.path, f"The column remove is invalid: {error}.") from error


def _remove_column(rows: pa.StructArray, leaf: str, target: pa.DataType) -> pa.Array:
    values = pc.struct_field(rows, leaf)
    if target == DELETION_VECTOR_TYPE:
        return deletion_vectors(values)
    if target == STRING_MAP:
        return plain_map(values)
    return as_type(values, target)
