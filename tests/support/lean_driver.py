"""`spark_jobs.main` in an interpreter that can import neither Great Expectations nor pandas.

    python -m tests.support.lean_driver --spec S --result R

Spark itself imports pandas where it can, so `sys.modules` does not show who needed it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from spark_jobs.main import main

ABSENT = frozenset({"great_expectations", "pandas"})


class AbsentPackages(MetaPathFinder):
    """Refuses the import of the packages, as if they were not installed."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname in ABSENT:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


if __name__ == "__main__":
    assert not ABSENT & sys.modules.keys()
    sys.meta_path.insert(0, AbsentPackages())
    code = main()
    assert not ABSENT & sys.modules.keys()
    sys.exit(code)
