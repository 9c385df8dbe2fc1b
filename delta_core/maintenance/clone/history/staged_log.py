"""The clone's log on this machine's disk, complete before the first file of it is published.

What a clean-up of the source's log takes away meanwhile is found missing here, where nothing can be seen of
the clone; publishing then needs the source no more.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pyarrow as pa

from delta_core.errors import CloneOutdatedError, CorruptLogError, ObjectNotFoundError
from delta_core.log.bounded_read import read_lines
from delta_core.log.checkpoint_part import damaged_checkpoint
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.commit_reader import read_commits
from delta_core.log.listing import CheckpointFiles
from delta_core.log.log_path import LogFileKind
from delta_core.maintenance.clone.history.checkpoint_translation import translate_part
from delta_core.maintenance.clone.history.kept_log import KeptLog
from delta_core.maintenance.clone.history.names import Names
from delta_core.storage.log_store import LogStore, ObjectInfo, read_immutable

_COMMITS_AT_ONCE = 64
_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A file of the log.

    Attributes:
        path: where it goes.
        content: where it waits.
        modified_ms: when the source's was written; None for a sidecar, whose time no reader asks for and
            by whose age a clean-up may take it before its checkpoint is there.
        version: of a commit; None for any other file.
    """

    path: str
    content: Path
    modified_ms: int | None
    version: int | None = None


@dataclass(slots=True, kw_only=True)
class LogStaging:
    """Puts the files of a log on disk.

    Attributes:
        store: the source's.
        kept: which files.
        names: the words of the clone.
        may_have_sidecars: whether a checkpoint with the name of a classic one may have some.
        directory: an empty directory of this machine.
    """

    store: LogStore
    kept: KeptLog
    names: Names
    may_have_sidecars: bool
    directory: Path
    _count: int = field(default=0, init=False)

    def stage(self) -> list[StagedFile]:
        """All files, in the order in which they may be published.

        At each place in that order what comes before is the log of one of the source's versions, or none:
        sidecars come before the checkpoint that names them, a checkpoint and a compaction after the commits
        that they stand for. Requests: one for each file, commits side by side.

        Raises:
            CloneOutdatedError: a commit, or the checkpoint that the log starts with, is gone.
            CorruptLogError: the checkpoint that the log starts with is damaged, or a commit is.
        """
        try:
            return list(self._in_order())
        except ObjectNotFoundError as error:
            raise CloneOutdatedError(
                f"The history of {self.store.uri} was cleaned up while it was copied.",
                cause=str(error),
                fix="Clone again: what is left of the history is copied then.",
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
                content.write_bytes(self.names.translated(commit.data))
                yield StagedFile(
                    path=file.info.path,
                    content=content,
                    modified_ms=file.info.modified_ms,
                    version=file.version,
                )
                yield from self._others(after.pop(file.version, []))

    def _first_checkpoint(self) -> Iterator[StagedFile]:
        """Those of the first version that can be copied, of which there must be one."""
        problem: Exception | None = None
        found: list[StagedFile] = []
        for files in self.kept.checkpoints:
            if files.version != self.kept.first_version:
                continue
            try:
                found += self._checkpoint(files)
            except (ObjectNotFoundError, CorruptLogError) as error:
                problem = error
        if problem is not None and not found:
            raise problem
        yield from found

    def _others_by_version(self) -> dict[int, list[Callable[[], list[StagedFile]]]]:
        """What follows each version's commit."""
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
                continue  # a shortcut, without which the commits say the same

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
                    info.path, f"it has {reader.size()} bytes, and was listed with {info.size_bytes}"
                )
            if self.names.any_other:
                try:
                    translate_part(reader, writer, names=self.names, sidecar_bytes=sidecar_bytes)
                except (OSError, pa.ArrowException) as error:
                    raise damaged_checkpoint(info.path, str(error)) from error
            else:
                while chunk := reader.read(_CHUNK_BYTES):
                    writer.write(chunk)
        return StagedFile(path=info.path, content=content, modified_ms=modified_ms)

    def _lines(self, info: ObjectInfo, sidecar_bytes: dict[str, int] | None = None) -> StagedFile:
        content = self._content()
        data = read_lines(self.store, info)
        if self.names.any_other:
            data = self.names.translated(data, sidecar_bytes=sidecar_bytes)
        content.write_bytes(data)
        return StagedFile(path=info.path, content=content, modified_ms=info.modified_ms)

    def _checksum(self, info: ObjectInfo) -> list[StagedFile]:
        data = read_immutable(self.store, info.path)
        if self.names.any_other:
            try:
                fields = orjson.loads(data)
            except orjson.JSONDecodeError:
                return []
            fields.pop("allFiles", None)  # which it need not list, and not in the source's words
            data = orjson.dumps(fields)
        content = self._content()
        content.write_bytes(data)
        return [StagedFile(path=info.path, content=content, modified_ms=info.modified_ms)]

    def _content(self) -> Path:
        self._count += 1
        return self.directory / str(self._count)
