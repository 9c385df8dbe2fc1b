"""The clone's file for each file of the source.

A shallow clone refers to the source's files by absolute paths (PROTOCOL.md, "Add File and Remove File":
`path` is relative or absolute; "Deletion Vectors": storage type `p`). A deep clone copies the files under new
names. Two concurrent clones to one target never write the same object, so a clone that fails deletes only
its own copies. A tag of each copy's `add` records which file was copied, so that the next clone recognizes
the copy.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import orjson

from delta_core.actions import AddFile, DeletionVectorDescriptor
from delta_core.deletion_vectors import z85
from delta_core.deletion_vectors.reader import deletion_vector_path
from delta_core.errors import CorruptLogError
from delta_core.schema.partition_values import canonical_directory
from delta_core.storage.data_access import DataAccess, ObjectLocation
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import absolute_log_path, canonical_log_path, encode_data_path

COPY_OF = "deltaward.copyOf"
"""The tag of a copied file.

A JSON list: the source's id, the path in the source, the ids of the deletion vectors in source and clone.
"""

NewId = Callable[[], uuid.UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One object to copy.

    Attributes:
        source: the object in the source.
        path: the copy's path in the clone's store (decoded, relative to the root).
        size_bytes: the size that the log records; None for a deletion vector file, whose size no log records.
    """

    source: ObjectLocation
    path: str
    size_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """The clone's files for the files of the source.

    Attributes:
        adds: the `add` actions of the commit: new files, and existing files whose row ids changed.
        origins: the source's file for each of `adds`.
        kept: the identities (`identity_of`) of files that the clone has already.
        copies: objects to copy for the new files; empty for a shallow clone.
    """

    adds: tuple[AddFile, ...]
    origins: tuple[AddFile, ...]
    kept: frozenset[tuple[str, str | None]] = frozenset()
    copies: tuple[Copy, ...] = ()


def identity_of(add: AddFile) -> tuple[str, str | None]:
    """The primary key of a logical file: path and deletion vector (PROTOCOL.md, "Action Reconciliation")."""
    dv = add.deletion_vector
    return canonical_log_path(add.path), None if dv is None else dv.unique_id


def shallow_clone_files(
    files: Iterable[AddFile], *, source: LogStore, access: DataAccess, known: Iterable[AddFile] = ()
) -> Translated:
    """The source's files under absolute, URI-encoded paths. Pure.

    Args:
        files: the source's files.
        source: the source's store.
        access: the roots that the source's paths may lead to, when the source is a shallow clone.
        known: the clone's present files.

    Raises:
        PathEscapeError: a path leads outside the source and the allowed roots.
    """
    have = {identity_of(add): add for add in known}
    pairs: list[tuple[AddFile, AddFile]] = []
    kept = set()
    for file in files:
        dv = file.deletion_vector
        if dv is not None and dv.storage_type != "i":
            place = deletion_vector_place(dv, source=source, access=access)
            dv = replace(dv, storage_type="p", path_or_inline_dv=_absolute(place))
        path = _absolute(access.locate(file.path, store=source))
        add = replace(file, path=path, deletion_vector=dv, data_change=True)
        before = have.get(identity_of(add))
        if before is None:
            pairs.append((add, file))
            continue
        kept.add(identity_of(add))
        pairs.extend((again, file) for again in _renumbered(before, file))
    return _translated(pairs, kept)


@dataclass(slots=True, kw_only=True)
class Copier:
    """Plans the copies of a deep clone.

    Attributes:
        table_id: the source's `metaData.id`. A table that replaced the source at the same location may have
            different files with the same paths.
        source: the source's store.
        access: the roots that the source's paths may lead to.
        new_id: generates the ids in new file names.
    """

    table_id: str
    source: LogStore
    access: DataAccess
    new_id: NewId = uuid.uuid4
    _deletion_vectors: dict[str, Copy] = field(default_factory=dict)

    def translated(self, files: Iterable[AddFile], *, known: Iterable[AddFile] = ()) -> Translated:
        """The clone's files, with new names for those that the clone does not have yet. Pure.

        Args:
            files: the source's files.
            known: the clone's present files.

        Raises:
            PathEscapeError: a path leads outside the source and the allowed roots.
        """
        have = {origin: add for add in known if (origin := self._origin(add)) is not None}
        pairs: list[tuple[AddFile, AddFile]] = []
        copies: list[Copy] = []
        kept = set()
        for file in files:
            before = have.get(identity_of(file))
            if before is not None:
                kept.add(identity_of(before))
                pairs.extend((again, file) for again in _renumbered(before, file))
                continue
            place = self.access.locate(file.path, store=self.source)
            copy = Copy(source=place, path=self._new_name(file.path, place), size_bytes=file.size_bytes)
            copies.append(copy)
            dv = self._copied_deletion_vector(file.deletion_vector)
            tag = [self.table_id, *identity_of(file), None if dv is None else dv.unique_id]
            add = replace(
                file,
                path=encode_data_path(copy.path),
                deletion_vector=dv,
                data_change=True,
                tags={**(file.tags or {}), COPY_OF: orjson.dumps(tag).decode()},
            )
            pairs.append((add, file))
        return _translated(pairs, kept, (*copies, *self._deletion_vectors.values()))

    def _origin(self, add: AddFile) -> tuple[str, str | None] | None:
        """The source's file that was copied to a file of the clone; None when deleted rows changed since."""
        try:
            tag = orjson.loads((add.tags or {}).get(COPY_OF) or "null")
        except orjson.JSONDecodeError:
            return None
        if not isinstance(tag, list) or len(tag) != 4 or tag[0] != self.table_id:
            return None
        return (tag[1], tag[2]) if identity_of(add)[1] == tag[3] else None

    def _new_name(self, raw: str, place: ObjectLocation) -> str:
        directory, name = posixpath.split(place.path)
        # A file of another table loses its directories, which need not match the clone's partitioning.
        directory = canonical_directory(directory) if place.store.uri == self.source.uri else ""
        dot = name.find(".", 1)
        return posixpath.join(directory, f"part-{self.new_id()}{name[dot:] if dot > 0 else ''}")

    def _copied_deletion_vector(self, dv: DeletionVectorDescriptor | None) -> DeletionVectorDescriptor | None:
        """The descriptor of a copy. Deletion vectors that share a file in the source share its copy."""
        if dv is None or dv.storage_type == "i":
            return dv
        place = deletion_vector_place(dv, source=self.source, access=self.access)
        where = _absolute(place)
        if where not in self._deletion_vectors:
            path = f"deletion_vector_{self.new_id()}.bin"
            self._deletion_vectors[where] = Copy(source=place, path=path, size_bytes=None)
        file_id = uuid.UUID(
            self._deletion_vectors[where].path.removeprefix("deletion_vector_").removesuffix(".bin")
        )
        # A descriptor without an offset means the first deletion vector of the file, also with type `u`.
        return replace(dv, storage_type="u", path_or_inline_dv=z85.encode(file_id.bytes))


def _translated(
    files: Iterable[tuple[AddFile, AddFile]],
    kept: Iterable[tuple[str, str | None]],
    copies: tuple[Copy, ...] = (),
) -> Translated:
    adds, origins = zip(*pairs, strict=True) if (pairs := list(files)) else ((), ())
    return Translated(adds=adds, origins=origins, kept=frozenset(kept), copies=copies)


def _renumbered(known: AddFile, file: AddFile) -> Iterator[AddFile]:
    """The clone's file with the source's row ids, when the source has assigned them since."""
    ids = (file.base_row_id, file.default_row_commit_version)
    if ids != (known.base_row_id, known.default_row_commit_version) and None not in ids:
        yield replace(
            known,
            base_row_id=file.base_row_id,
            default_row_commit_version=file.default_row_commit_version,
            stats=file.stats,
            data_change=False,
        )


def copied_properties(source: Mapping[str, str], *, table_id: str) -> dict[str, str]:
    """The source's properties, and the property that names the source."""
    return {**source, CLONE_OF: table_id}


CLONE_OF = "deltaward.cloneOf"
"""The property of a clone whose value is its source's `metaData.id`."""


def deletion_vector_place(
    dv: DeletionVectorDescriptor, *, source: LogStore, access: DataAccess
) -> ObjectLocation:
    """The place of the file of a deletion vector that is not inline.

    Raises:
        PathEscapeError: a path leads outside the source and the allowed roots.
        CorruptLogError: the descriptor has no valid file name.
    """
    if dv.storage_type == "p":
        return access.locate(dv.path_or_inline_dv, store=source)
    try:
        path = deletion_vector_path(dv, root_uri=source.uri)
    except ValueError as error:
        raise CorruptLogError(
            f"A deletion vector of {source.uri} cannot be found.",
            cause=str(error),
            fix="Restore the source to a version without this deletion vector.",
        ) from error
    assert path is not None
    return ObjectLocation(source, path)


def _absolute(place: ObjectLocation) -> str:
    return absolute_log_path(place.path, root_uri=place.store.uri)
