"""Commits as unparsed bytes, to find a table's protocol and metadata without parsing its file actions.

The length of a line is limited, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from delta_core.actions import Metadata, Protocol
from delta_core.actions.json_codec import (
    MAX_LINE_BYTES,
    RawAction,
    iter_lines,
    metadata_from_json,
    parse_commit,
    parse_line,
    protocol_from_json,
    require_lines,
)
from delta_core.errors import CorruptLogError
from delta_core.log.listing import CommitFile
from delta_core.storage.log_store import LogStore, ObjectInfo, fetch_listed, read_immutable
from delta_core.storage.parallel import parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitData:
    """The bytes of a commit, or of a log compaction file. They are parsed on demand."""

    version: int
    path: str
    data: bytes

    def actions(self) -> list[RawAction]:
        """The whole commit, checked. Raises CorruptLogError."""
        return parse_commit(self.data, path=self.path)

    def protocol_and_metadata(self) -> tuple[Protocol | None, Metadata | None]:
        """The protocol and the metadata of the commit. Parses only the lines that can hold them.

        Raises:
            CorruptLogError: such a line is damaged, or the commit has two actions of one kind.
        """
        # A JSON key may be written with escapes, so a line with an escape must be parsed, too.
        marks = (b'"protocol"', b'"metaData"', b"\\u00")
        if not any(mark in self.data for mark in marks):
            return None, None
        actions: dict[str, RawAction] = {}
        for number, line in iter_lines(self.data):
            if not any(mark in line for mark in marks):
                continue
            action = parse_line(line, number=number, path=self.path)
            if action is None or action.kind not in ("protocol", "metaData"):
                continue
            if action.kind in actions:
                raise CorruptLogError(
                    f"Line {number} of {self.path!r} is not a valid action.",
                    cause=f"It is a second {action.kind!r}, after line {actions[action.kind].line}.",
                    fix="Restore the log file from a backup.",
                )
            actions[action.kind] = action
        protocol, metadata = actions.get("protocol"), actions.get("metaData")
        return (
            None if protocol is None else protocol_from_json(protocol.fields),
            None if metadata is None else metadata_from_json(metadata.fields),
        )


def read_commits(store: LogStore, files: Sequence[CommitFile]) -> tuple[CommitData, ...]:
    """Read commits, in order. One request each, in parallel on a remote store.

    Raises:
        CorruptLogError: a commit is empty, or has a line longer than MAX_LINE_BYTES.
        ObjectNotFoundError: a commit does not exist.
        StorageError: a read failed, or the size of a commit differs from the listed size.
    """
    bodies = parallel(store, [partial(read_lines, store, file.info) for file in files])
    for file, data in zip(files, bodies, strict=True):
        require_lines(data, path=file.info.path)
    return tuple(
        CommitData(version=file.version, path=file.info.path, data=data)
        for file, data in zip(files, bodies, strict=True)
    )


_CHUNK_BYTES = 16 << 20


def read_lines(store: LogStore, info: ObjectInfo) -> bytes:
    """The complete bytes of a commit, or of a checkpoint in the form of JSON lines.

    One request, and more when a response is incomplete.

    Raises:
        CorruptLogError: a line is longer than MAX_LINE_BYTES; the rest of the file is not read.
        ObjectNotFoundError: the file does not exist.
        StorageError: the read failed, or the size differs from the listed size. A part is never returned.
    """
    if info.size_bytes <= MAX_LINE_BYTES:
        return fetch_listed(info, partial(read_immutable, store, info.path))
    return fetch_listed(info, partial(_read_long, store, info))


def _read_long(store: LogStore, info: ObjectInfo) -> bytes:
    chunks: list[bytes] = []
    line_bytes = 0
    with store.open_input(info.path) as source:
        while chunk := bytes(source.read(_CHUNK_BYTES)):
            first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
            # Lines that lie completely within one chunk are shorter than the limit.
            if line_bytes + (len(chunk) if first < 0 else first) > MAX_LINE_BYTES:
                raise CorruptLogError(
                    f"The log file {info.path!r} cannot be read.",
                    cause=f"One of its lines has more than {MAX_LINE_BYTES} bytes.",
                    fix="Restore the log file from a backup.",
                )
            line_bytes = line_bytes + len(chunk) if last < 0 else len(chunk) - last - 1
            chunks.append(chunk)
    return b"".join(chunks)
