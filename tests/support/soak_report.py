"""What the result of every soak says first: what ran, on which commit, when, for how long and where."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from typing import Any

from tests.support.repository import ROOT


def report_head(area: str, *, seed: str | int | None, seconds: float) -> dict[str, Any]:
    """The first entries of a result.

    Args:
        seed: None for an area that draws nothing.
    """
    head: dict[str, Any] = {"area": area, "command": f"make soak-{area}"}
    if seed is not None:
        head["seed"] = seed
    return head | {
        "commit": git("rev-parse", "HEAD") or "unknown",
        # Not the results: long soaks write theirs as they go.
        "uncommitted_changes": bool(git("status", "--porcelain", "--", ".", ":!benchmarks/results")),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "duration_seconds": round(seconds, 1),
        "machine": {
            "cores": os.cpu_count(),
            "platform": platform.platform(),
            "python": platform.python_version(),
        },
    }


def git(*words: str) -> str:
    """What git says of this repository; nothing where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()
