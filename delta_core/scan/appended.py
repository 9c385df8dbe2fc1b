"""The rows that a table gained between two versions, for incremental readers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from delta_core import expressions
from delta_core.actions import Action, AddFile, Metadata, Protocol, RemoveFile
from delta_core.errors import ConfigurationError, TableChangedError, VersionNotFoundError
from delta_core.expressions.ast import Expression
from delta_core.expressions.typing import resolve
from delta_core.scan.file_readers import PastFileReaders
from delta_core.scan.record_batches import FileReader
from delta_core.scan.table_definitions import TableDefinition, definition_after, require_compatible_definition
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess, ObjectLocation
from delta_core.storage.log_store import LogStore

PartitionValues = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedFiles:
    """The data files added by the commits after one version.

    Attributes:
        since_version: the last version that is not included.
        version: the last version that is included.
        adds: in the order of the commits. A later compaction may have replaced some of the files; the files
            still have the same rows, and remain until vacuum deletes them.
    """

    since_version: int
    version: int
    adds: tuple[AddFile, ...]


def appended_files(snapshot: Snapshot, *, since_version: int) -> AppendedFiles:
    """The files appended after `since_version`, up to the snapshot's version.

    Commits that only rearrange rows, such as compactions, add nothing. One request for each commit.

    Args:
        snapshot: the last version to include.
        since_version: the last version already read; -1 is before the first.

    Raises:
        TableChangedError: a commit changed or removed rows, so appended files are not the whole change.
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
                f"Version {version} of {snapshot.store.uri!r} removes or changes rows, but only appended "
                "rows can be read incrementally.",
                cause=f"The commit removes {len(removed)} of the table's files.",
                fix=f"Read the whole table at version {version}, and continue with the versions after it.",
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
    """The rows appended after `since_version`, commit by commit, in bounded memory.

    All checks that are possible without reading data run before the first batch. Arguments and errors are
    those of `appended_files`; `columns` and `filters` are those of `DeltaTable.to_batches`, and
    `allowed_roots` that of `Scan`. A file that vacuum has deleted raises MissingDataFileError.
    """
    snapshot.require_readable(through_scan=True)
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
            mapping=snapshot.column_mapping,
            access=access,
        )

    readers = PastFileReaders(schema=schema, mapping=snapshot.column_mapping, make=reader)
    readers.of(snapshot.partition_columns)  # refuses unknown columns before the log is read
    adds = appended_files(snapshot, since_version=since_version).adds
    places = (access.locate(add.path, store=snapshot.store) for add in adds)
    return _rows(readers, zip(places, adds, strict=True))


def _rows(
    readers: PastFileReaders, adds: Iterable[tuple[ObjectLocation, AddFile]]
) -> Iterator[pa.RecordBatch]:
    for place, add in adds:
        reader = readers.of(add.partition_values)
        yield from reader.read(place.store, place.path, add.partition_values)


def changed_partitions(snapshot: Snapshot, *, since_version: int) -> tuple[Mapping[str, str | None], ...]:
    """The partitions whose rows changed after `since_version`, each once, in the order of their values.

    Removed rows count as well as added rows. One request for each commit.

    Args:
        snapshot: the last version to include.
        since_version: the last version already read; -1 is before the first.

    Returns:
        Partition values as in the log, by column; one empty mapping for a table without partitions.

    Raises:
        VersionNotFoundError: a commit is no longer in the log.
        CorruptLogError: a commit is damaged.
        ConfigurationError: the snapshot is older than `since_version`.
        TableChangedError: a removed file has no recorded partition.
    """
    snapshot.require_readable(operation="list the changed partitions")
    partitions: set[PartitionValues] = set()
    for version, actions in _commits(snapshot, since_version):
        for action in actions:
            if not isinstance(action, (AddFile, RemoveFile)) or not action.data_change:
                continue
            values = action.partition_values
            if values is None or (snapshot.partition_columns and not values):
                raise TableChangedError(
                    f"Version {version} of {snapshot.store.uri!r} does not record the partitions it changed.",
                    cause=f"The file {action.path!r} has no partition values.",
                    fix="Process the whole table.",
                )
            partitions.add(tuple(sorted(values.items())))
    ordered = sorted(partitions, key=lambda values: [(value is not None, value or "") for _, value in values])
    return tuple(dict(values) for values in ordered)


def _commits(snapshot: Snapshot, since_version: int) -> Iterator[tuple[int, list[Action]]]:
    if since_version > snapshot.version:
        raise ConfigurationError(
            f"The changes after version {since_version} of {snapshot.store.uri!r} cannot be read.",
            cause=f"The table is only at version {snapshot.version}; it may have been replaced.",
            fix="Read the whole table, and continue after the version that you read.",
        )
    for version in range(since_version + 1, snapshot.version + 1):
        try:
            actions = commit_actions(snapshot.store, version)
        except VersionNotFoundError as error:
            raise VersionNotFoundError(
                f"The changes of version {version} of {snapshot.store.uri!r} are not in the log.",
                cause="Log cleanup deleted the commit after a checkpoint.",
                fix="Read the whole table, and continue after the version that you read.",
            ) from error
        yield version, actions


def _require_same_rules(snapshot: Snapshot, past: Mapping[int, Sequence[Action]]) -> None:
    """Refuse when the commits' protocol or metadata are incompatible with those of the snapshot."""
    first, *later = past or [snapshot.version]
    if not any(past[version] for version in later):
        return
    state = Snapshot.load(snapshot.store, version=first)
    definition: TableDefinition = (state.protocol, state.metadata)
    for version in (first, *later):
        definition = definition_after(definition, past[version])
        require_compatible_definition(snapshot, version, definition, through_scan=True, same_columns=False)


def _require_whole_files(snapshot: Snapshot, added: list[AddFile], version: int) -> None:
    """Refuse a file with a deletion vector: some of its rows are deleted, and others are not new."""
    masked = next((add for add in added if add.deletion_vector is not None), None)
    if masked is not None:
        raise TableChangedError(
            f"Version {version} of {snapshot.store.uri!r} changes rows, but only appended rows can be read "
            "incrementally.",
            cause=f"The file {masked.path!r} has a deletion vector.",
            fix=f"Read the whole table at version {version}, and continue with the versions after it.",
        )
