"""Violations of the real core that are understood and not yet mended.

There is none at present. One that is found gets a strict expected failure and an entry here, so that samples
count it apart and a new one stands out; `test_mended_violations.py` has those that went.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KNOWN: Mapping[str, tuple[re.Pattern[str], ...]] = {}


def known(violation: str) -> str | None:
    """The name of a violation that is understood; None for a new one."""
    return next(
        (name for name, patterns in KNOWN.items() if any(p.fullmatch(violation) for p in patterns)), None
    )
