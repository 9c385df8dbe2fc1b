"""Generation expressions of partition columns, and what an engine in some time zone makes of a value."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from delta_core.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
)

_STEPS = [
    dt.timedelta(microseconds=1),
    dt.timedelta(minutes=17),
    dt.timedelta(hours=5),
    dt.timedelta(days=3),
    dt.timedelta(days=100),
]


@dataclass(frozen=True)
class Generator:
    """Partition columns generated from the column `base`.

    Attributes:
        source: the type of `base`.
        columns: for each partition column its type and expression.
        make: the columns' values for a value of `base` as the session sees it, by its wall clock.
    """

    source: DataType
    columns: dict[str, tuple[DataType, str]]
    make: Callable[[Any, ZoneInfo], tuple[Any, ...]]

    def of(self, value: Any, zone: ZoneInfo) -> tuple[Any, ...]:
        """The columns' values; null of null."""
        if value is None:
            return (None,) * len(self.columns)
        try:
            return self.make(value, zone)
        except OverflowError:
            # A time that the session's clock does not reach here; no row has it.
            return ("beyond",) * len(self.columns)

    def near(self, rng: random.Random, value: Any) -> list[Any]:
        """Values around this one, of which some may give the same."""
        if isinstance(value, dt.date):
            found = []
            for step in _STEPS:
                for sign in (1, -1):
                    try:
                        found.append(value + sign * rng.randint(1, 5) * step)
                    except OverflowError:
                        continue
            return found
        if isinstance(value, str):
            return [value + "x", value[:2], value[:3] + "\U0010ffff" * 3, value[:1] + "z" + value[2:]]
        return [] if value is None else [max(-(2**31), min(value + 7 * n, 2**31 - 1)) for n in (-3, 1, 2)]


def _wall(value: Any, zone: ZoneInfo) -> dt.datetime:
    """What a session in the zone has on its clock at the time."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(zone).replace(tzinfo=None)
    return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)


def _through_zone(value: Any, zone: ZoneInfo) -> dt.datetime:
    """As `_wall`, by way of a timestamp in the zone: a wall clock that the zone has skipped moves on."""
    wall = _wall(value, zone)
    return wall.replace(tzinfo=zone).astimezone(dt.UTC).astimezone(zone).replace(tzinfo=None)


def _instant(wall: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    return wall.replace(tzinfo=zone).astimezone(dt.UTC)


def _day(wall: dt.datetime) -> dt.datetime:
    return wall.replace(hour=0, minute=0, second=0, microsecond=0)


def _format(wall: dt.datetime, *, to: int) -> str:
    return f"{wall.year:04d}-{wall.month:02d}-{wall.day:02d}-{wall.hour:02d}"[:to]


def _parts(*names: str) -> dict[str, tuple[DataType, str]]:
    return {f"g_{name}": (INTEGER, f"{name.upper()}(base)") for name in names}


GENERATORS: list[Generator] = []
for _source in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
    GENERATORS += [
        Generator(_source, {"g": (DATE, "CAST(base AS DATE)")}, lambda v, z: (_wall(v, z).date(),)),
        Generator(_source, _parts("year"), lambda v, z: (_wall(v, z).year,)),
        Generator(_source, _parts("year", "month"), lambda v, z: ((w := _wall(v, z)).year, w.month)),
        Generator(
            _source,
            _parts("year", "month", "day"),
            lambda v, z: ((w := _wall(v, z)).year, w.month, w.day),
        ),
        Generator(
            _source,
            {"g": (DATE, "TRUNC(base, 'MONTH')")},
            lambda v, z: (_wall(v, z).date().replace(day=1),),
        ),
        Generator(
            _source,
            {"g": (STRING, "DATE_FORMAT(base, 'yyyy-MM')")},
            lambda v, z: (_format(_through_zone(v, z), to=7),),
        ),
        Generator(
            _source,
            {"g": (STRING, "date_format(base, 'yyyy-MM-dd-HH')")},
            lambda v, z: (_format(_through_zone(v, z), to=13),),
        ),
    ]
GENERATORS += [
    Generator(
        TIMESTAMP,
        _parts("year", "month", "day", "hour"),
        lambda v, z: ((w := _wall(v, z)).year, w.month, w.day, w.hour),
    ),
    Generator(
        TIMESTAMP,
        {"g": (TIMESTAMP, "DATE_TRUNC('DAY', base)")},
        lambda v, z: (_instant(_day(_wall(v, z)), z),),
    ),
    Generator(
        TIMESTAMP,
        {"g": (TIMESTAMP, "date_trunc('hour', base)")},
        lambda v, z: (_instant(_wall(v, z).replace(minute=0, second=0, microsecond=0), z),),
    ),
    Generator(STRING, {"g": (STRING, "SUBSTRING(base, 1, 3)")}, lambda v, z: (v[:3],)),
    Generator(STRING, {"g": (STRING, "substring(base, 0, 2)")}, lambda v, z: (v[:2],)),
    Generator(STRING, {"g": (STRING, "SUBSTRING(base, 2, 2)")}, lambda v, z: (v[1:3],)),
    Generator(STRING, {"g": (STRING, "base")}, lambda v, z: (v,)),
    Generator(STRING, {"g": (STRING, "CONCAT(LEFT(base, 1), '-x')")}, lambda v, z: (v[:1] + "-x",)),
    Generator(LONG, {"g": (LONG, "base")}, lambda v, z: (v,)),
    Generator(INTEGER, {"g": (LONG, "CAST(base AS BIGINT)")}, lambda v, z: (v,)),
    Generator(STRING, {"g": (STRING, "soundex(base)")}, lambda v, z: (v[:1] + "000",)),
]
