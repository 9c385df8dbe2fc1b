"""Whether the files of a checkpoint are all different: one that is there twice would count twice.

Hashing a million paths as strings takes longer than everything else that opening needs. So each path gets
a number made of its last bytes, where writers put what makes it unique; the numbers are sorted, and only
paths whose number is there more than once are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.replay.file_chunk import FileChunk

# A UUID and what writers put after it.
_WORDS = 6
_MOST_WORDS = 64
_MANY = 0.01
_MULTIPLIERS = np.array(
    [0x9E3779B97F4A7C15 * (2 * number + 1) % (1 << 64) for number in range(_MOST_WORDS)], np.uint64
)


@dataclass(frozen=True, slots=True)
class PathNumbers:
    """The numbers of all paths of a checkpoint, in order: tells at once that a path is none of them.

    Attributes:
        ordered: the upper halves of the numbers.
        words: of how many words they are made.
    """

    ordered: npt.NDArray[np.uint32]
    words: int

    def may_have(self, paths: pa.StringArray) -> bool:
        """False when none of the paths, so spelled, is in the checkpoint."""
        return bool(self.among(paths).any())

    def among(self, paths: pa.StringArray) -> npt.NDArray[np.bool_]:
        """Which of the paths may be in the checkpoint, so spelled; the others are not."""
        return _among(_upper_halves(_numbers(paths, self.words)), self.ordered)


def distinct_files(chunks: Sequence[FileChunk]) -> tuple[PathNumbers | None, str | None]:
    """The numbers of some chunks' paths, and a path that is there twice, if there is one.

    Twice means with one deletion vector, or without.
    """
    held = [chunk for chunk in chunks if chunk.num_rows]
    if not held:
        return None, None
    words = _WORDS
    ordered = _ordered(held, words)
    if np.count_nonzero(ordered[1:] == ordered[:-1]) > _MANY * len(ordered):
        # Files that one job wrote into many partitions may differ in their directories alone.
        longest = max(pc.max(pc.binary_length(chunk.column("path"))).as_py() for chunk in held)
        words = max(_WORDS, min(_MOST_WORDS, -(-longest // 8)))
        ordered = _ordered(held, words)
    numbers = PathNumbers(_upper_halves(ordered), words)
    doubled = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(doubled):
        return numbers, None
    suspects = [
        (chunk, np.flatnonzero(_among(_numbers(chunk.column("path"), words), doubled))) for chunk in held
    ]
    return numbers, _compared(suspects)


def _ordered(chunks: Sequence[FileChunk], words: int) -> npt.NDArray[np.uint64]:
    ordered = np.empty(sum(chunk.num_rows for chunk in chunks), np.uint64)
    start = 0
    for chunk in chunks:
        ordered[start : start + chunk.num_rows] = _numbers(chunk.column("path"), words)
        start += chunk.num_rows
    ordered.sort()
    return ordered


def _upper_halves(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    # A shift would take as much memory again.
    return np.ascontiguousarray(numbers.astype("<u8", copy=False).view("<u4")[1::2])


def _compared(suspects: list[tuple[FileChunk, npt.NDArray[np.int64]]]) -> str | None:
    """A path that is in some rows of the chunks twice."""
    paths = [chunk.column("path").take(pa.array(rows)) for chunk, rows in suspects]
    counts = pc.value_counts(pa.chunked_array(paths, pa.string()))
    several = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if not len(several):
        return None
    seen: set[tuple[str, str]] = set()
    for (chunk, rows), texts in zip(suspects, paths, strict=True):
        for place in np.flatnonzero(pc.is_in(texts, several).to_numpy(zero_copy_only=False)):
            path = texts[int(place)].as_py()
            dv = chunk.column("deletion_vector")[int(rows[place])].as_py()
            key = (path, repr(dv))
            if key in seen:
                return str(path)
            seen.add(key)
    return None


def _among(
    values: npt.NDArray[np.unsignedinteger], ordered: npt.NDArray[np.unsignedinteger]
) -> npt.NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    places = np.searchsorted(ordered, values)
    places[places == len(ordered)] = 0
    found: npt.NDArray[np.bool_] = np.equal(ordered[places], values)
    return found


def _numbers(paths: pa.Array, words: int) -> npt.NDArray[np.uint64]:
    """A number for each path: equal paths have equal ones."""
    if len(paths) == 0:
        return np.empty(0, np.uint64)
    _, offsets_buffer, data_buffer = paths.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[paths.offset : paths.offset + len(paths) + 1]
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    first, last = int(starts[0]), int(ends[-1])
    # A word may begin at any byte, and that of a short path before the first one.
    text = np.frombuffer(data_buffer or b"", np.uint8)[first:last]
    padded = np.concatenate((np.zeros(8, np.uint8), text))
    every = np.ndarray((len(text) + 1,), "<u8", buffer=padded.data, strides=(1,))
    lengths = ends - starts
    shortest = int(lengths.min())
    found = lengths.astype(np.uint64)
    ends -= first
    # As many for every path, whatever others are beside it: else equal paths had different numbers.
    for number in range(words):
        if shortest >= 8 * (number + 1):
            word = every[ends - 8 * number]
        else:
            # What lies before a path's first byte is another path's: the low bytes.
            foreign = np.clip(8 * (number + 1) - lengths, 0, 8)
            word = every[np.maximum(ends - 8 * number, 0)] >> (8 * np.minimum(foreign, 7)).astype(np.uint64)
            word[foreign == 8] = 0
        found += word * _MULTIPLIERS[number]
        found ^= found >> np.uint64(29)
    return found
