"""The check that a checkpoint lists no file twice, since such a file would count twice.

Hashing a million paths as strings takes longer than all other work for opening a table. So the hash of a path
covers only its last bytes, where writers put the unique part of the name. The hashes are sorted, and only
paths with equal hashes are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.replay.file_chunk import FileChunk

# The number of eight-byte words that cover a UUID and the characters that writers put after it.
_WORDS = 6
_MAX_WORDS = 64
_MANY_COLLISIONS = 0.01
_MULTIPLIERS = np.array(
    [0x9E3779B97F4A7C15 * (2 * number + 1) % (1 << 64) for number in range(_MAX_WORDS)], np.uint64
)


@dataclass(frozen=True, slots=True)
class PathHashes:
    """The sorted hashes of all paths of a checkpoint, to find quickly that a path is not in it.

    Attributes:
        ordered: the upper halves of the hashes, ascending.
        words: the number of eight-byte words of a path that its hash covers.
    """

    ordered: npt.NDArray[np.uint32]
    words: int

    def may_contain_any(self, paths: pa.StringArray) -> bool:
        """False when none of the paths is in the checkpoint with exactly this spelling."""
        return bool(self.may_contain(paths).any())

    def may_contain(self, paths: pa.StringArray) -> npt.NDArray[np.bool_]:
        """A mask of the paths that may be in the checkpoint with this spelling. The others are not."""
        return _is_among(_upper_halves(_path_hashes(paths, self.words)), self.ordered)


def distinct_files(chunks: Sequence[FileChunk]) -> tuple[PathHashes | None, str | None]:
    """The hashes of the chunks' paths, and a path that occurs twice, or None.

    Twice means with equal deletion vectors, or without deletion vectors.
    """
    chunks = [chunk for chunk in chunks if chunk.num_rows]
    if not chunks:
        return None, None
    words = _WORDS
    ordered = _ordered(chunks, words)
    if np.count_nonzero(ordered[1:] == ordered[:-1]) > _MANY_COLLISIONS * len(ordered):
        # Files that one job wrote into many partitions may differ only in their directories.
        longest = max(pc.max(pc.binary_length(chunk.column("path"))).as_py() for chunk in chunks)
        words = max(_WORDS, min(_MAX_WORDS, -(-longest // 8)))
        ordered = _ordered(chunks, words)
    hashes = PathHashes(_upper_halves(ordered), words)
    doubled = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(doubled):
        return hashes, None
    suspects = [
        (chunk, np.flatnonzero(_is_among(_path_hashes(chunk.column("path"), words), doubled)))
        for chunk in chunks
    ]
    return hashes, _duplicate(suspects)


def _ordered(chunks: Sequence[FileChunk], words: int) -> npt.NDArray[np.uint64]:
    ordered = np.empty(sum(chunk.num_rows for chunk in chunks), np.uint64)
    start = 0
    for chunk in chunks:
        ordered[start : start + chunk.num_rows] = _path_hashes(chunk.column("path"), words)
        start += chunk.num_rows
    ordered.sort()
    return ordered


def _upper_halves(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    # A shift would need a copy of the array.
    return np.ascontiguousarray(hashes.astype("<u8", copy=False).view("<u4")[1::2])


def _duplicate(suspects: list[tuple[FileChunk, npt.NDArray[np.int64]]]) -> str | None:
    """A path that occurs twice in the given rows of the chunks with equal deletion vectors, or None."""
    paths = [chunk.column("path").take(pa.array(rows)) for chunk, rows in suspects]
    counts = pc.value_counts(pa.chunked_array(paths, pa.string()))
    several = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if not len(several):
        return None
    seen: set[tuple[str, str]] = set()
    for (chunk, rows), row_paths in zip(suspects, paths, strict=True):
        for place in np.flatnonzero(pc.is_in(row_paths, several).to_numpy(zero_copy_only=False)):
            path = row_paths[int(place)].as_py()
            dv = chunk.column("deletion_vector")[int(rows[place])].as_py()
            key = (path, repr(dv))
            if key in seen:
                return str(path)
            seen.add(key)
    return None


def _is_among(
    values: npt.NDArray[np.unsignedinteger], ordered: npt.NDArray[np.unsignedinteger]
) -> npt.NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    places = np.searchsorted(ordered, values)
    places[places == len(ordered)] = 0
    mask: npt.NDArray[np.bool_] = np.equal(ordered[places], values)
    return mask


def _path_hashes(paths: pa.Array, words: int) -> npt.NDArray[np.uint64]:
    """The hash of each path. Equal paths have equal hashes."""
    if len(paths) == 0:
        return np.empty(0, np.uint64)
    _, offsets_buffer, data_buffer = paths.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[paths.offset : paths.offset + len(paths) + 1]
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    first, last = int(starts[0]), int(ends[-1])
    # A word may begin at any byte, and a word of a short path before the first byte.
    content = np.frombuffer(data_buffer or b"", np.uint8)[first:last]
    padded = np.concatenate((np.zeros(8, np.uint8), content))
    every = np.ndarray((len(content) + 1,), "<u8", buffer=padded.data, strides=(1,))
    lengths = ends - starts
    shortest = int(lengths.min())
    hashes = lengths.astype(np.uint64)
    ends -= first
    # The number of words must not depend on the other paths, so that equal paths have equal hashes.
    for number in range(words):
        if shortest >= 8 * (number + 1):
            word = every[ends - 8 * number]
        else:
            # The bytes before a path's first byte belong to another path. They are the low bytes of the word.
            foreign = np.clip(8 * (number + 1) - lengths, 0, 8)
            word = every[np.maximum(ends - 8 * number, 0)] >> (8 * np.minimum(foreign, 7)).astype(np.uint64)
            word[foreign == 8] = 0
        hashes += word * _MULTIPLIERS[number]
        hashes ^= hashes >> np.uint64(29)
    return hashes
