"""The source's values of a merge's equalities, and the index over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.expressions.arithmetic import common_type
from delta_core.merge.condition import KeyEquality, KeyValues
from delta_core.merge.hash_index import HashIndex, Rows
from delta_core.merge.hashing import is_hashable
from delta_core.merge.key_index import Array, KeyIndex, comparable
from delta_core.merge.names import MergeNames
from delta_core.merge.source import MergeSource

Index: TypeAlias = "KeyIndex | HashIndex"

HASHED_ROWS: Final = 2_000_000
"""The keys of a larger source are not held in memory: only their hashes are."""


class SourceKeys:
    """The keys of the source: held when they are few, else evaluated again when they are needed."""

    def __init__(self, source: MergeSource, equalities: Sequence[KeyEquality], names: MergeNames) -> None:
        """Remember the merge. Evaluates nothing yet."""
        self._source, self._equalities, self._names = source, equalities, names
        self.are_held = source.num_rows <= HASHED_ROWS
        """Whether the keys are in memory."""

    @cached_property
    def _held(self) -> list[pa.ChunkedArray]:
        return [self._source.values(equality.source, self._names) for equality in self._equalities]

    def limits(self) -> tuple[KeyValues | None, ...]:
        """For each equality, what limits the target's files; see `MergeSource.key_values`."""
        blocks: Sequence[Iterator[pa.Array]]
        if self.are_held:
            blocks = [iter(values.chunks) for values in self._held]
        else:
            blocks = [self._source.value_blocks(one.source, self._names) for one in self._equalities]
        return tuple(
            self._source.key_values(equality, part)
            for equality, part in zip(self._equalities, blocks, strict=True)
        )

    def index(
        self, target_types: Sequence[pa.DataType], *, candidates: npt.NDArray[np.bool_] | None
    ) -> Index | None:
        """The index of the source's rows; None without equalities.

        Args:
            target_types: for each equality the type of the target's values.
            candidates: which source rows may match; all when None.
        """
        if not self._equalities:
            return None
        null_safe = [equality.null_safe for equality in self._equalities]
        types = [
            common_type(target, self._source.type_of(equality.source, self._names))
            for target, equality in zip(target_types, self._equalities, strict=True)
        ]
        if self.are_held or not all(map(is_hashable, types)):
            return KeyIndex(self._held, target_types, null_safe=null_safe, candidates=candidates)
        return HashIndex(
            self._blocks(types),
            types,
            num_rows=self._source.num_rows,
            null_safe=null_safe,
            candidates=candidates,
            keys_of=self._keys_of,
        )

    def _blocks(self, types: Sequence[pa.DataType]) -> Iterator[Sequence[Array]]:
        streams = [self._source.value_blocks(one.source, self._names) for one in self._equalities]
        for block in zip(*streams, strict=True):
            yield [comparable(values, kind) for values, kind in zip(block, types, strict=True)]

    def _keys_of(self, rows: Rows) -> Sequence[Array]:
        return [self._source.values_of(one.source, self._names, rows) for one in self._equalities]
