"""Which files can hold a test that a run asks for, known before they are imported.

A file takes its imports and its parameters to collect, and each worker of a run collects every file: an area
that runs a tenth of the files would spend a third of its time on the others.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

from _pytest.mark.expression import Expression

# Marks that stand in the file of the test that bears them; any other may come from a `conftest.py`.
WRITTEN = ("e2e", "extra", "slow", "soak")
_MARK = re.compile(r"\bmark\.(" + "|".join(WRITTEN) + r")\b")


def can_hold(text: str, expression: str) -> bool:
    """Whether some test of a file with this text can have the marks that an expression of `-m` asks for.

    A test bears some of the marks that its file names, or none.
    """
    if not expression.strip():
        return True
    asked = Expression.compile(expression)
    words = set(re.findall(r"[\w.]+", expression)) - {"and", "or", "not", *WRITTEN}
    choices = sorted({*_MARK.findall(text), *words})
    every = (set(borne) for count in range(len(choices) + 1) for borne in combinations(choices, count))
    return any(asked.evaluate(borne.__contains__) for borne in every)


def is_left_out(path: Path, expression: str) -> bool:
    """Whether a run need not import a test file, since none of its tests can be asked for."""
    is_test = path.suffix == ".py" and path.name.startswith("test_")
    return is_test and not can_hold(path.read_text(), expression)
