"""What judges a suite's rules: in the driver, or on Spark's tasks. The rules themselves are the same code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spark_jobs.quality.counted import CountedValues
from spark_jobs.quality.rules import AskingRule
from spark_jobs.quality.staged import Positions
from spark_jobs.quality.tallies import Tally

AskingRules = Mapping[int, AskingRule]
"""Rules by the place of their expectation in the suite."""


@dataclass(slots=True)
class Found:
    """What the rows have told.

    Attributes:
        tallies: of every rule; of one that counts values, only why it could not.
        counted: of the rules that count values.
    """

    tallies: dict[int, Tally]
    counted: dict[int, CountedValues] = field(default_factory=dict)


class Engine(Protocol):
    """Judges the rows of one batch."""

    def judge(self, rules: AskingRules) -> Found:
        """Ask every row.

        Raises:
            DeltaError: a staged file cannot be read, or Spark failed.
        """
        ...

    def locate(self, selected: Sequence[int]) -> dict[int, Positions]:
        """The ascending positions of the rows that do not meet some of the rules that were judged."""
        ...
