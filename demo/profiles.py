"""How much the demonstration loads: everything, or just enough to see every check at work."""

from __future__ import annotations

from dataclasses import dataclass

YEAR = 2013


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The months of 2013 and how they are loaded.

    Attributes:
        first_months: loaded by one run.
        single_months: loaded by one run each, through Airflow's backfill.
        feeds: the tables that are loaded.
        standalone: whether Airflow's services run the DAGs, rather than one process.
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

PROFILES = {profile.name: profile for profile in (FULL, BRIEF, FAST)}
