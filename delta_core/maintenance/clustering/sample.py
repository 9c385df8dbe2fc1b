"""A sample of rows that is the same for the same seed, bounded, and can be gathered in parts."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from delta_core.maintenance.clustering.values import SortValues

SAMPLE_ROWS: Final = 1 << 16
"""Rows of a sample; with fewer rows than this every quantile is exact."""


class Sampler:
    """Keeps the rows with the smallest of random numbers, which is a uniform sample of all of them.

    Args:
        seed: of the random numbers; a part of the rows that is sampled apart needs a seed of its own.
        limit: rows that are kept.
    """

    def __init__(self, seed: Sequence[int] = (0,), *, limit: int = SAMPLE_ROWS) -> None:
        self._random = np.random.default_rng(list(seed))
        self._limit = limit
        self._parts: list[tuple[npt.NDArray[np.float64], list[SortValues]]] = []
        self._kept = 0
        self._threshold = 1.0

    def add(self, columns: Sequence[SortValues]) -> None:
        """Offer rows; the columns' order is always the same."""
        drawn = self._random.random(len(columns[0].values))
        self._keep(drawn, columns)

    def merge(self, document: Mapping[str, Any]) -> None:
        """Add the sample of other rows, as `to_json` wrote it."""
        drawn = np.frombuffer(base64.b64decode(document["drawn"]), np.float64)
        self._keep(drawn, [_column_from_json(item) for item in document["columns"]])

    def columns(self) -> list[SortValues]:
        """The sampled rows."""
        self._shrink()
        return [SortValues.concat(parts) for parts in zip(*(part for _, part in self._parts), strict=True)]

    def to_json(self) -> dict[str, Any]:
        """The sample as a JSON object."""
        self._shrink()
        drawn = np.concatenate([np.zeros(0), *(part for part, _ in self._parts)])
        return {
            "drawn": base64.b64encode(drawn.tobytes()).decode("ascii"),
            "columns": [_column_to_json(column) for column in self.columns()],
        }

    def _keep(self, drawn: npt.NDArray[np.float64], columns: Sequence[SortValues]) -> None:
        rows = np.flatnonzero(drawn < self._threshold)
        if not len(rows) and self._parts:
            return
        self._parts.append((drawn[rows], [column.take(rows) for column in columns]))
        self._kept += len(rows)
        if self._kept > 2 * self._limit:
            self._shrink()

    def _shrink(self) -> None:
        if len(self._parts) <= 1 and self._kept <= self._limit:
            return
        drawn = np.concatenate([part for part, _ in self._parts])
        columns = [SortValues.concat(parts) for parts in zip(*(part for _, part in self._parts), strict=True)]
        if len(drawn) > self._limit:
            self._threshold = float(np.partition(drawn, self._limit)[self._limit])
            rows = np.flatnonzero(drawn < self._threshold)
            drawn, columns = drawn[rows], [column.take(rows) for column in columns]
        self._parts = [(drawn, columns)]
        self._kept = len(drawn)


def _column_to_json(column: SortValues) -> dict[str, Any]:
    return {
        "dtype": column.values.dtype.str,
        "values": base64.b64encode(column.values.tobytes()).decode("ascii"),
        "nulls": None
        if column.nulls is None
        else base64.b64encode(np.packbits(column.nulls).tobytes()).decode("ascii"),
    }


def _column_from_json(document: Mapping[str, Any]) -> SortValues:
    values = np.frombuffer(base64.b64decode(document["values"]), np.dtype(document["dtype"]))
    nulls = None
    if document["nulls"] is not None:
        bits = np.frombuffer(base64.b64decode(document["nulls"]), np.uint8)
        nulls = np.unpackbits(bits, count=len(values)).astype(np.bool_)
    return SortValues(values=values, nulls=nulls)
