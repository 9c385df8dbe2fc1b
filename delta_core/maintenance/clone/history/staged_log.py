"""Staging the clone's log on this machine's disk, completely, before its first file is published.

When a clean-up of the source's log deletes files meanwhile, staging fails before readers can see the clone.
Publishing does not read the source.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pyarrow as pa

from delta_core.errors import CloneOutdatedError, CorruptLogError, ObjectNotFoundError
from delta_core.log.checkpoint_part import damaged_checkpoint
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.commit_reader import read_commits, read_lines
from delta_core.log.listing import CheckpointFiles
from delta_core.log.log_path import LogFileKind
from delta_core.maintenance.clone.history.checkpoint_translation import translate_part
from delta_core.maintenance.clone.history.kept_log import KeptLog
from delta_core.maintenance.clone.history.path_mapping import PathMapping
from delta_core.storage.log_store import LogStore, ObjectInfo, read_immutable

_COMMITS_AT_ONCE = 64
_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A file of the clone's log, staged on this machine.

    Attributes:
        path: the file's path in the clone.
        content: the staged file on this machine.
        modified_ms: the modification time of the source's file. None for a sidecar: readers do not use its
            time, and with an old time a clean-up might delete the sidecar before its checkpoint is published.
        version: the version of a commit; None for any other file.
    """

    path: str
    content: Path
    modified_ms: int | None
    version: int | None = None


@dataclass(slots=True, kw_only=True)
class LogStaging:
    """Writes the files of a log to a local directory.

    Attributes:
        store: the source's store.
        kept: the files to stage.
        path_mapping: maps paths of the source to paths of the clone.
        may_have_sidecars: whether a checkpoint with a classic file name may have sidecars.
        directory: an empty directory on this machine.
    """

    store: LogStore
    kept: KeptLog
    path_mapping: PathMapping
    may_have_sidecars: bool
    directory: Path
    _count: int = field(default=0, init=False)

    def stage(self) -> list[StagedFile]:
        """Stage all files; returns them in the order in which they must be published.

        Every prefix of that order is the log of one of the source's versions, or no log at all. Sidecars come
        before their checkpoint. A checkpoint and a compaction come after the commits that they replace.
        Requests: one for each file, commits in parallel.

        Raises:
            CloneOutdatedError: a commit, or the checkpoint that the log starts with, is missing.
            CorruptLogError: a commit, or the checkpoint that the log starts with, is damaged.
        """
        try:
            return list(self._in_order())
        except ObjectNotFoundError as error:
            raise CloneOutdatedError(
                f"The log of {self.store.uri} was cleaned up while it was copied.",
                cause=str(error),
                fix="Clone again. The clone then has the remaining history.",
            ) from error

    def _in_order(self) -> Iterator[StagedFile]:
        first = self.kept.first_version
        if self.kept.starts_at_checkpoint:
            yield from self._first_checkpoint()
        after = self._others_by_version()
        if not self.kept.commits or self.kept.commits[0].version > first:
            yield from self._others(after.pop(first, []))
        for start in range(0, len(self.kept.commits), _COMMITS_AT_ONCE):
            files = self.kept.commits[start : start + _COMMITS_AT_ONCE]
            for file, commit in zip(files, read_commits(self.store, files), strict=True):
                content = self._content()
                content.write_bytes(self.path_mapping.translated(commit.data))
                yield StagedFile(
                    path=file.info.path,
                    content=content,
                    modified_ms=file.info.modified_ms,
                    version=file.version,
                )
                yield from self._others(after.pop(file.version, []))

    def _first_checkpoint(self) -> Iterator[StagedFile]:
        """The checkpoints of the first version that can be copied. At least one must be."""
        problem: Exception | None = None
        staged: list[StagedFile] = []
        for files in self.kept.checkpoints:
            if files.version != self.kept.first_version:
                continue
            try:
                staged += self._checkpoint(files)
            except (ObjectNotFoundError, CorruptLogError) as error:
                problem = error
        if problem is not None and not staged:
            raise problem
        yield from staged

    def _others_by_version(self) -> dict[int, list[Callable[[], list[StagedFile]]]]:
        """For each version, functions that stage the files which follow its commit."""
        after: dict[int, list[Callable[[], list[StagedFile]]]] = {}
        for files in self.kept.checkpoints:
            if not (self.kept.starts_at_checkpoint and files.version == self.kept.first_version):
                after.setdefault(files.version, []).append(lambda files=files: self._checkpoint(files))  # type: ignore[misc]
        for item in self.kept.compactions:
            after.setdefault(item.end_version, []).append(lambda info=item.info: [self._lines(info)])  # type: ignore[misc]
        for version, info in self.kept.checksums:
            after.setdefault(version, []).append(lambda info=info: self._checksum(info))  # type: ignore[misc]
        return after

    def _others(self, staging: list[Callable[[], list[StagedFile]]]) -> Iterator[StagedFile]:
        for stage in staging:
            try:
                yield from stage()
            except (ObjectNotFoundError, CorruptLogError):
                continue  # The file is optional: the commits contain the same state.

    def _checkpoint(self, files: CheckpointFiles) -> list[StagedFile]:
        sidecars: list[StagedFile] = []
        sidecar_bytes: dict[str, int] = {}
        if files.kind is LogFileKind.V2_CHECKPOINT or self.may_have_sidecars:
            for path in CheckpointReader.open(self.store, files).sidecar_paths():
                info = self.store.head(path)
                staged = self._parquet(info, {}, modified_ms=None)
                sidecars.append(staged)
                sidecar_bytes[posixpath.basename(path)] = staged.content.stat().st_size
        parts = [
            self._parquet(info, sidecar_bytes, modified_ms=info.modified_ms)
            if info.path.endswith(".parquet")
            else self._lines(info, sidecar_bytes)
            for info in files.parts
        ]
        return sidecars + parts

    def _parquet(
        self, info: ObjectInfo, sidecar_bytes: dict[str, int], *, modified_ms: int | None
    ) -> StagedFile:
        content = self._content()
        with self.store.open_input(info.path) as reader, pa.OSFile(str(content), "wb") as writer:
            if reader.size() != info.size_bytes:
                raise damaged_checkpoint(
                    info.path, f"it has {reader.size()} bytes, but was listed with {info.size_bytes}"
                )
            if self.path_mapping.any_changed:
                try:
                    translate_part(
                        reader, writer, path_mapping=self.path_mapping, sidecar_bytes=sidecar_bytes
                    )
                except (OSError, pa.ArrowException) as error:
                    raise damaged_checkpoint(info.path, str(error)) from error
            else:
                while chunk := reader.read(_CHUNK_BYTES):
                    writer.write(chunk)
        return StagedFile(path=info.path, content=content, modified_ms=modified_ms)

    def _lines(self, info: ObjectInfo, sidecar_bytes: dict[str, int] | None = None) -> StagedFile:
        content = self._content()
        data = read_lines(self.store, info)
        if self.path_mapping.any_changed:
            data = self.path_mapping.translated(data, sidecar_bytes=sidecar_bytes)
        content.write_bytes(data)
        return StagedFile(path=info.path, content=content, modified_ms=info.modified_ms)

    def _checksum(self, info: ObjectInfo) -> list[StagedFile]:
        data = read_immutable(self.store, info.path)
        if self.path_mapping.any_changed:
            try:
                fields = orjson.loads(data)
            except orjson.JSONDecodeError:
                return []
            fields.pop("allFiles", None)  # This field is optional, and has the source's paths.
            data = orjson.dumps(fields)
        content = self._content()
        content.write_bytes(data)
        return [StagedFile(path=info.path, content=content, modified_ms=info.modified_ms)]

    def _content(self) -> Path:
        self._count += 1
        return self.directory / str(self._count)
