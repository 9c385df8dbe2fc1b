"""`spark_jobs.main` in an interpreter that can import neither Great Expectations nor pandas.

    python -m tests.support.lean_driver --spec S --result R

Spark itself imports pandas where it can, so `sys.modules` does not show who needed it.
"""

from __future__ import annotations

import sys

from spark_jobs.main import main
from tests.support.absent_packages import AbsentPackages

if __name__ == "__main__":
    AbsentPackages("great_expectations", "pandas").install()
    sys.exit(main())
