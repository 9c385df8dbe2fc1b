"""Reading files of JSON lines with a limit on the length of a line, so that memory stays bounded."""

from __future__ import annotations

from functools import partial

from delta_core.actions.json_codec import MAX_LINE_BYTES
from delta_core.errors import CorruptLogError
from delta_core.storage.log_store import LogStore, ObjectInfo, fetch_listed, read_immutable

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
