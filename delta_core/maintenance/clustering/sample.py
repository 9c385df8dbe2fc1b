"""A random sample of rows: of bounded size, repeatable with the same seed, and mergeable from parts."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from delta_core.maintenance.clustering.values import SortValues

SAMPLE_ROWS: Final = 1 << 16
"""Most rows of a sample. When the group has fewer rows, every quantile is exact."""


class Sampler:
    """A uniform sample: each row draws a random number, and the rows with the smallest numbers are kept.

    Args:
        seed: seed of the random numbers. Each separately sampled part of the rows needs its own seed.
        limit: number of rows in the sample.
    """

    def __init__(self, seed: Sequence[int] = (0,), *, limit: int = SAMPLE_ROWS) -> None:
        self._random = np.random.default_rng(list(seed))
        self._limit = limit
        self._parts: list[tuple[npt.NDArray[np.float64], list[SortValues]]] = []
        self._kept = 0
        self._threshold = 1.0

    def add(self, columns: Sequence[SortValues]) -> None:
        """Add rows to the population. Every call must pass the columns in the same order."""
        drawn = self._random.random(len(columns[0].values))
        self._keep(drawn, columns)

    def merge(self, document: Mapping[str, Any]) -> None:
        """Merge a sample of further rows, in the form that `to_json` writes."""
        drawn = np.frombuffer(base64.b64decode(document["drawn"]), np.float64)
        self._keep(drawn, [_column_from_json(item) for item in document["columns"]])

    def columns(self) -> list[SortValues]:
        """The columns of the sampled rows."""
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
