"""What a table gained between two of its versions, for readers that go on where they stopped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from delta_core import expressions
from delta_core.actions import Action, AddFile, Metadata, Protocol, RemoveFile
from delta_core.errors import ConfigurationError, TableChangedError, VersionNotFoundError
from delta_core.expressions.ast import Expression
from delta_core.expressions.typing import resolve
from delta_core.scan.past_files import PastFileReaders
from delta_core.scan.past_states import Rules, require_same_rules, rules_after
from delta_core.scan.record_batches import FileReader
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess, ObjectPlace
from delta_core.storage.log_store import LogStore

PartitionValues = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedFiles:
    """The data files that commits after one version added.

    Attributes:
        since_version: the last version that does not count.
        version: the last version that does.
        adds: in the order of their commits. A later compaction may have replaced some of them; their rows
            are the same and their files are there until vacuum takes them.
    """

    since_version: int
    version: int
    adds: tuple[AddFile, ...]


def appended_files(snapshot: Snapshot, *, since_version: int) -> AppendedFiles:
    """The files that were appended after `since_version`, up to the snapshot's version.

    Commits that only rearrange rows, such as compaction, add nothing. One request for each commit.

    Args:
        snapshot: the version to go up to.
        since_version: the version already seen; -1 is before the first.

    Raises:
        TableChangedError: a commit changed or removed rows, so appended files do not tell the whole story.
        VersionNotFoundError: a commit is no longer in the log.
        ConfigurationError: the snapshot is older than `since_version`.
    """
    adds: list[AddFile] = []
    past: dict[int, list[Action]] = {}
    for version, actions in _commits(snapshot, since_version):
        past[version] = [action for action in actions if isinstance(action, (Protocol, Metadata))]
        removed = [a for a in actions if isinstance(a, RemoveFile) and a.data_change]
        if removed:
            raise TableChangedError(
                f"Version {version} of {snapshot.store.uri!r} removed or changed rows.",
                cause=f"It removed {len(removed)} files, so the files that were added are not all that "
                "happened",
                fix="Read the whole table, or let the consumer start again from this version",
            )
        added = [a for a in actions if isinstance(a, AddFile) and a.data_change]
        _require_whole_files(snapshot, added, version)
        adds += added
    _require_same_rules(snapshot, past)
    return AppendedFiles(since_version=since_version, version=snapshot.version, adds=tuple(adds))


def appended_batches(
    snapshot: Snapshot,
    *,
    since_version: int,
    columns: Sequence[str] | None = None,
    filters: Expression | str | None = None,
    allowed_roots: Sequence[LogStore] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows that were appended after `since_version`, commit by commit, in bounded memory.

    What can be refused is refused before the first batch. Arguments and errors are those of
    `appended_files`, `columns` and `filters` those of `DeltaTable.to_batches`, `allowed_roots` that of
    `Scan`; besides, a file that vacuum has taken since is a MissingDataFileError.
    """
    snapshot.require_readable()
    schema = snapshot.schema
    predicate = expressions.parse_predicate(filters, schema) if isinstance(filters, str) else filters
    access = DataAccess(allowed_roots=tuple(allowed_roots), clock=snapshot.clock)
    resolved = None if predicate is None else resolve(predicate, schema)

    def reader(partition_columns: Collection[str]) -> FileReader:
        return FileReader(
            schema=schema,
            columns=columns,
            predicate=resolved,
            partition_columns=tuple(partition_columns),
            access=access,
        )

    readers = PastFileReaders(schema=schema, mapping=snapshot.column_mapping, make=reader)
    readers.of(snapshot.partition_columns)  # here a column that does not exist is refused
    adds = appended_files(snapshot, since_version=since_version).adds
    places = (access.locate(add.path, store=snapshot.store) for add in adds)
    return _rows(readers, zip(places, adds, strict=True))


def _rows(readers: PastFileReaders, adds: Iterable[tuple[ObjectPlace, AddFile]]) -> Iterator[pa.RecordBatch]:
    for place, add in adds:
        reader = readers.of(add.partition_values)
        yield from reader.read(place.store, place.path, add.partition_values)


def changed_partitions(snapshot: Snapshot, *, since_version: int) -> tuple[Mapping[str, str | None], ...]:
    """The partitions whose rows changed after `since_version`, each once, in the order of their values.

    Rows that were removed count as well as rows that were added. One request for each commit.

    Args:
        snapshot: the version to go up to.
        since_version: the version already seen; -1 is before the first.

    Returns:
        Partition values as the log has them, by column; one empty mapping for a table without partitions.

    Raises:
        VersionNotFoundError: a commit is no longer in the log.
        CorruptLogError: a commit is damaged.
        ConfigurationError: the snapshot is older than `since_version`.
        TableChangedError: a removed file does not say which partition it was in.
    """
    snapshot.require_readable(operation="tell which partitions changed")
    found: set[PartitionValues] = set()
    for version, actions in _commits(snapshot, since_version):
        for action in actions:
            if not isinstance(action, (AddFile, RemoveFile)) or not action.data_change:
                continue
            values = action.partition_values
            if values is None or (snapshot.partition_columns and not values):
                raise TableChangedError(
                    f"Version {version} of {snapshot.store.uri!r} does not say which partitions it changed.",
                    cause=f"The file {action.path!r} has no partition values",
                    fix="Work on the whole table",
                )
            found.add(tuple(sorted(values.items())))
    ordered = sorted(found, key=lambda values: [(value is not None, value or "") for _, value in values])
    return tuple(dict(values) for values in ordered)


def _commits(snapshot: Snapshot, since_version: int) -> Iterator[tuple[int, list[Action]]]:
    if since_version > snapshot.version:
        raise ConfigurationError(
            f"The changes after version {since_version} of {snapshot.store.uri!r} are asked for.",
            cause=f"The table is at version {snapshot.version}; another table may be at its place",
            fix="Let the consumer start again, without a version that it has seen",
        )
    for version in range(since_version + 1, snapshot.version + 1):
        try:
            actions = commit_actions(snapshot.store, version)
        except VersionNotFoundError as error:
            raise VersionNotFoundError(
                f"The changes of version {version} of {snapshot.store.uri!r} are not in the log.",
                cause="Log cleanup has passed it, since a checkpoint holds what is live",
                fix="Read the whole table once; then go on from its version",
            ) from error
        yield version, actions


def _require_same_rules(snapshot: Snapshot, past: Mapping[int, Sequence[Action]]) -> None:
    """Refuse when files of the commits do not read by the snapshot's protocol and metadata."""
    first, *later = past or [snapshot.version]
    if not any(past[version] for version in later):
        return
    state = Snapshot.load(snapshot.store, version=first)
    rules: Rules = (state.protocol, state.metadata)
    for version in (first, *later):
        rules = rules_after(rules, past[version])
        require_same_rules(snapshot, version, rules, through_scan=False, same_columns=False)


def _require_whole_files(snapshot: Snapshot, added: list[AddFile], version: int) -> None:
    """Refuse a file with a deletion vector: not all of its rows are there, and some were there before."""
    masked = next((add for add in added if add.deletion_vector is not None), None)
    if masked is not None:
        raise TableChangedError(
            f"Version {version} of {snapshot.store.uri!r} changed rows.",
            cause=f"The file {masked.path!r} has a deletion vector",
            fix="Read the whole table, or let the consumer start again from this version",
        )
