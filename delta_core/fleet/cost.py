"""The cost of verbs in CPU seconds: a constant, a part per byte and a part per file, fitted to runs. Pure.

Small tables are dominated by the constant, large ones by their bytes. With few runs the fit stays near the
priors, which were measured on the tables of `benchmarks/fleet_scale.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbCost:
    """The CPU seconds of one verb.

    Attributes:
        constant: seconds for each run of the verb.
        per_byte: seconds for each predicted byte.
        per_file: seconds for each predicted file.
        runs: number of runs that the values were fitted to; 0 for the priors.
    """

    constant: float
    per_byte: float
    per_file: float
    runs: int = 0

    def seconds(self, *, files: int, size_bytes: int) -> float:
        """The predicted CPU seconds of a run."""
        return self.constant + self.per_byte * size_bytes + self.per_file * files


PRIORS: Final[Mapping[str, VerbCost]] = {
    "optimize": VerbCost(constant=0.008, per_byte=1.5e-8, per_file=0.0002),
    "cluster": VerbCost(constant=0.02, per_byte=4e-8, per_file=0.0004),
    "checkpoint": VerbCost(constant=0.012, per_byte=1e-12, per_file=0.00001),
    "vacuum": VerbCost(constant=0.018, per_byte=1e-12, per_file=0.00005),
}
"""The costs without a run. `cluster` is for Z-order, too."""

_PRIOR_WEIGHT: Final = 0.05
_NEWEST: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """The costs of all verbs, and the price of CPU time."""

    verbs: Mapping[str, VerbCost]
    price_per_cpu_hour: float = 0.0

    def seconds(self, verb: str, *, files: int, size_bytes: int) -> float:
        """The predicted CPU seconds of a run of a verb."""
        return self.verbs[verb].seconds(files=files, size_bytes=size_bytes)

    def money(self, cpu_seconds: float) -> float:
        """The price of CPU time."""
        return cpu_seconds / 3600 * self.price_per_cpu_hour


def fit(runs: Iterable[Mapping[str, Any]], *, price_per_cpu_hour: float = 0.0) -> CostModel:
    """The cost model for the rows of `runs`: least squares of the relative errors.

    Args:
        runs: rows of the ledger's `runs`. Only successes that did work count, the newest 400 of each verb.
        price_per_cpu_hour: the price of CPU time.
    """
    measured: dict[str, list[tuple[float, float, float]]] = {verb: [] for verb in PRIORS}
    for row in runs:
        seconds = row["cpu_seconds"]
        if row["outcome"] == "succeeded" and row["verb"] in measured and seconds and row["actual_files"]:
            measured[row["verb"]].append(
                (float(row["predicted_files"] or 0), float(row["predicted_bytes"] or 0), float(seconds))
            )
    verbs = {verb: _fitted(PRIORS[verb], rows[-_NEWEST:]) for verb, rows in measured.items()}
    return CostModel(verbs=verbs, price_per_cpu_hour=price_per_cpu_hour)


def _fitted(prior: VerbCost, rows: list[tuple[float, float, float]]) -> VerbCost:
    if not rows:
        return prior
    start = np.array([prior.constant, prior.per_byte, prior.per_file])
    files, sizes, seconds = (np.array(column) for column in zip(*rows, strict=True))
    # In units of the prior and of the measured time: the squares are of relative errors. The last rows pull
    # each value towards its prior, all by the same factor, so that few runs cannot turn one of them around.
    factor = float(np.median(seconds / (start[0] + start[1] * sizes + start[2] * files)))
    design = np.column_stack([np.ones(len(rows)), sizes, files]) * start / seconds[:, None]
    design = np.vstack([design, np.eye(3) * _PRIOR_WEIGHT])
    wanted = np.concatenate([np.ones(len(rows)), np.full(3, _PRIOR_WEIGHT * factor)])
    free = [0, 1, 2]
    values = np.zeros(3)
    while free:
        values[:] = 0
        values[free] = np.linalg.lstsq(design[:, free], wanted, rcond=None)[0]
        if (values[free] >= 0).all():
            break
        free = [index for index in free if values[index] >= 0]
    constant, per_byte, per_file = (float(value) for value in np.maximum(values, 0) * start)
    return VerbCost(constant=constant, per_byte=per_byte, per_file=per_file, runs=len(rows))
