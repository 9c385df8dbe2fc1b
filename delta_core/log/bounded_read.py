"""Files of JSON lines, refused before they are in memory when one of their lines is no action."""

from __future__ import annotations

from functools import partial

from delta_core.actions.json_codec import MAX_LINE_BYTES
from delta_core.errors import CorruptLogError
from delta_core.storage.log_store import LogStore, ObjectInfo, fetch_listed, read_immutable

_CHUNK_BYTES = 16 << 20


def read_lines(store: LogStore, info: ObjectInfo) -> bytes:
    """The bytes of a commit, or of a checkpoint written like one, whole. One request, more when one is cut.

    Raises:
        CorruptLogError: a line is longer than any action; no more than that much has been read of it.
        ObjectNotFoundError: the file is gone.
        StorageError: among others, because it has not the size that was listed; a part is never returned.
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
            # Lines that lie within a chunk are shorter than the limit.
            if line_bytes + (len(chunk) if first < 0 else first) > MAX_LINE_BYTES:
                raise CorruptLogError(
                    f"{info.path!r} cannot be read.",
                    cause=f"A line of it has more than {MAX_LINE_BYTES} bytes.",
                    fix="Restore the log file from a backup.",
                )
            line_bytes = line_bytes + len(chunk) if last < 0 else len(chunk) - last - 1
            chunks.append(chunk)
    return b"".join(chunks)
