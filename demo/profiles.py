"""The amount of data that the demonstration loads: all of it, or just enough for every check."""

from __future__ import annotations

from dataclasses import dataclass

YEAR = 2013


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The months of 2013 and how they are loaded.

    Attributes:
        first_months: the months that one run loads.
        single_months: the months that Airflow's backfill loads, with one run each.
        feeds: the tables to load.
        standalone: True if Airflow's services run the DAGs, False if one process does.
    """

    name: str
    first_months: tuple[int, ...]
    single_months: tuple[int, ...]
    feeds: tuple[str, ...]
    standalone: bool

    @property
    def months(self) -> tuple[int, ...]:
        return self.first_months + self.single_months


FULL = Profile(
    name="full",
    first_months=tuple(range(1, 10)),
    single_months=(10, 11, 12),
    feeds=("flights", "weather"),
    standalone=True,
)
BRIEF = Profile(name="brief", first_months=(1,), single_months=(2,), feeds=("flights",), standalone=True)
FAST = Profile(
    name="fast", first_months=(1,), single_months=(2, 3), feeds=("flights", "weather"), standalone=False
)
# A sabotage that skips a month needs two; without one, two loads less do.
LEAST = Profile(
    name="least", first_months=(1,), single_months=(2,), feeds=("flights", "weather"), standalone=False
)

PROFILES = {profile.name: profile for profile in (FULL, BRIEF, FAST, LEAST)}
