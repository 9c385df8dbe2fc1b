"""Generates the change stream that cdc_orders applies: a shop's orders in the format of Debezium.

The same seed gives the same stream. The changes happen in the order of `source.lsn`. They are delivered in
micro-batches that follow this order only roughly: some changes are late, some are repeated, and each batch is
shuffled.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

STATUSES = ["placed", "paid", "packed", "shipped", "delivered"]
START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z"""
DELETED_SHARE = 0.12
LATE_SHARE = 0.1
REPEATED_SHARE = 0.08

Change = dict[str, Any]


def changes(*, seed: int, count: int) -> list[Change]:
    """The changes in the order in which they happened, one per lsn.

    The first orders existed before the stream began (`r`, read by a snapshot). Some deleted orders are placed
    again under their old id.
    """
    rng = random.Random(f"{seed}/changes")
    rows: dict[int, dict[str, Any]] = {}
    deleted: list[int] = []
    stream = []
    for number in range(count):
        before = after = None
        if number < count // 20:
            op, after = "r", _order(number, rng)
        elif rows and rng.random() < DELETED_SHARE:
            op, before = "d", rows[rng.choice(sorted(rows))]
            deleted.append(before["id"])
        elif rows and rng.random() < 0.65:
            op, before = "u", rows[rng.choice(sorted(rows))]
            after = {**before, "status": rng.choice(STATUSES), "amount": _amount(rng)}
        else:
            returns = deleted and rng.random() < 0.3
            op, after = "c", _order(deleted.pop() if returns else number, rng)
        if after is None:
            del rows[before["id"]]  # type: ignore[index]
        else:
            rows[after["id"]] = after
        at_ms = START_MS + 1000 * number
        source = {"table": "orders", "lsn": 10_000 + 8 * number, "ts_ms": at_ms}
        stream.append(
            {
                "op": op,
                "before": before,
                "after": after,
                "source": source,
                "ts_ms": at_ms + rng.randrange(500),
            }
        )
    return stream


def micro_batches(happened: list[Change], *, seed: int, count: int) -> list[list[Change]]:
    """The changes in micro-batches: each at least once, and late changes in a later batch."""
    rng = random.Random(f"{seed}/delivery")
    batches: list[list[Change]] = [[] for _ in range(count)]
    for number, change in enumerate(happened):
        own = number * count // len(happened)
        late = rng.random() < LATE_SHARE
        batches[rng.randrange(own, count) if late else own].append(change)
        if rng.random() < REPEATED_SHARE:
            batches[rng.randrange(own, count)].append(change)
    for batch in batches:
        rng.shuffle(batch)
    return batches


def land(
    batches: Iterable[int], *, changes_in_all: int, batches_in_all: int, seed: int, directory: Path
) -> int:
    """Write some of the micro-batches to `directory`, one file each; return their number of changes."""
    delivered = micro_batches(changes(seed=seed, count=changes_in_all), seed=seed, count=batches_in_all)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    landed = 0
    for number in batches:
        lines = [json.dumps(change) for change in delivered[number]]
        (directory / f"orders-{number:04}.json").write_text("".join(f"{line}\n" for line in lines))
        landed += len(lines)
    return landed


def _order(number: int, rng: random.Random) -> dict[str, Any]:
    return {
        "id": number,
        "customer": f"customer-{rng.randrange(200):03}",
        "status": "placed",
        "amount": _amount(rng),
    }


def _amount(rng: random.Random) -> str:
    """A decimal amount as a string, because a JSON number would be parsed as a binary fraction."""
    return f"{rng.randrange(100, 100_000) / 100:.2f}"
