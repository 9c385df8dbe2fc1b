"""The engines that evaluate a suite's rules: in the driver, or in Spark's tasks. Both run the same rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spark_jobs.quality.rules import EngineRule
from spark_jobs.quality.tallies import Tally
from spark_jobs.quality.value_counts import CountedValues
from spark_jobs.writer.staged_files import Positions

EngineRules = Mapping[int, EngineRule]
"""Rules by the index of their expectation in the suite."""


@dataclass(slots=True)
class EngineResults:
    """The results of evaluating the rules of a suite.

    Attributes:
        tallies: the tally of each rule. For a rule that counts values it has only the error, if any.
        counted: the counted values of the rules that count values.
    """

    tallies: dict[int, Tally]
    counted: dict[int, CountedValues] = field(default_factory=dict)


class Engine(Protocol):
    """Evaluates rules on the rows of one batch."""

    def evaluate(self, rules: EngineRules) -> EngineResults:
        """Evaluate the rules on every row.

        Raises:
            DeltaError: a staged file cannot be read, or Spark failed.
        """
        ...

    def locate(self, selected: Sequence[int]) -> dict[int, Positions]:
        """The ascending positions of the rows that do not meet the selected rules, after `evaluate`."""
        ...
