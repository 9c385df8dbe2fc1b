"""Scoring of tables: which tables need maintenance most according to their policies. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from delta_core.maintenance.observe import Decision, TableHealth, decide
from delta_core.policies.resolve import ResolvedPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScore:
    """One table's decisions, each with its reason.

    Attributes:
        urgency: the greatest urgency of a due verb; 0.0 when no verb is due.
    """

    name: str
    uri: str
    decisions: tuple[Decision, ...]

    @property
    def urgency(self) -> float:
        """The urgency of the most urgent due verb: how far it is over its limit."""
        return max((decision.urgency for decision in self.decisions if decision.due), default=0.0)

    @property
    def due(self) -> tuple[str, ...]:
        """The verbs to run, in order."""
        return tuple(decision.verb for decision in self.decisions if decision.due)

    def to_json(self) -> dict[str, Any]:
        """The score as a JSON object."""
        return {
            "name": self.name,
            "uri": self.uri,
            "urgency": self.urgency,
            "due": list(self.due),
            "decisions": [decision.to_json() for decision in self.decisions],
        }


def score(policy: ResolvedPolicy, health: TableHealth) -> TableScore:
    """Decide which verbs are due for one table."""
    return TableScore(name=policy.name, uri=policy.uri, decisions=decide(health, policy.rules()))


def rank(scores: Iterable[TableScore]) -> tuple[TableScore, ...]:
    """The tables sorted by urgency, most urgent first, and then by name."""
    return tuple(sorted(scores, key=lambda item: (-item.urgency, item.name)))
