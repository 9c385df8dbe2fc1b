"""Generates the access log that medallion_logs refines: one hour as JSON lines, deterministic for a seed.

As in a real network, a few hosts cause most of the traffic. As in a real log, some lines are truncated or not
JSON, some values are impossible, and some events arrive an hour late or twice. From EVOLVES_AT on, the events
have a new field that was not announced.
"""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

HOSTS = 400
PORTS = [443, 80, 53, 22, 8080, 5432, 3306, 25, 993, 9092]
EVOLVES_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
FILES = 4

BROKEN_SHARE = 0.004
IMPOSSIBLE_SHARE = 0.006
LATE_SHARE = 0.01
REPEATED_SHARE = 0.01

_ZIPF = list(accumulate(1 / rank for rank in range(1, HOSTS + 1)))
_NOISE = ["-- log rotated --", '{"eventId": "', "", "GET / HTTP/1.1 200"]


def events_of(hour: datetime, *, events: int, seed: int) -> list[dict[str, Any]]:
    """The events of an hour, and a few late events of the previous hour."""
    rng = random.Random(f"{seed}/{hour:%Y-%m-%dT%H}")
    generated = []
    for number in range(events):
        late = rng.random() < LATE_SHARE
        start = hour - timedelta(hours=1) if late else hour
        event: dict[str, Any] = {
            "eventId": f"{hour:%Y%m%d%H}-{number:07}",
            "time": f"{start + timedelta(milliseconds=rng.randrange(3_600_000)):%Y-%m-%dT%H:%M:%S.%f}Z",
            "sourceIP": _address(10, rng),
            "sourcePort": rng.randrange(1024, 65536),
            "destIP": _address(172, rng),
            "destPort": rng.choices(PORTS, weights=range(len(PORTS), 0, -1))[0],
            "bytes": int(rng.lognormvariate(7, 2)),
            "action": "deny" if rng.random() < 0.03 else "allow",
        }
        if hour >= EVOLVES_AT:
            event["tlsVersion"] = rng.choice(["1.2", "1.3"])
        if rng.random() < IMPOSSIBLE_SHARE:
            event |= rng.choice([{"destPort": 70_000}, {"bytes": -1}, {"bytes": "n/a"}, {"action": None}])
        generated.append(event)
    return generated


def land(hour: datetime, *, events: int, seed: int, directory: Path) -> dict[str, int]:
    """Write the hour's log to `directory` as a few files.

    Returns:
        The number of lines, of lines that are not JSON, and of lines that repeat an event.
    """
    rng = random.Random(f"{seed}/{hour:%Y-%m-%dT%H}/delivery")
    current = events_of(hour, events=events, seed=seed)
    before = events_of(hour - timedelta(hours=1), events=events, seed=seed)
    repeats = round(events * REPEATED_SHARE)
    repeated = rng.sample(current, repeats) + rng.sample(before, repeats // 2)
    broken = [rng.choice(_NOISE) for _ in range(round(events * BROKEN_SHARE))]
    lines = [json.dumps(event) for event in current + repeated] + [line for line in broken if line]
    rng.shuffle(lines)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for number in range(FILES):
        (directory / f"access-{number}.json").write_text("\n".join(lines[number::FILES]) + "\n")
    return {
        "lines": len(lines),
        "broken": sum(1 for line in broken if line),
        "repeated": len(repeated),
    }


def _address(network: int, rng: random.Random) -> str:
    """A random address. Low ranks are the most frequent, and neighbouring ranks have distant addresses."""
    rank = rng.choices(range(HOSTS), cum_weights=_ZIPF)[0]
    scattered = rank * 2_654_435_761 % (1 << 16)
    return f"{network}.16.{scattered >> 8}.{scattered & 255}"
