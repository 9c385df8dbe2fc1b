"""How a parallel run deals tests out to its workers."""

from __future__ import annotations

import re
from functools import cache

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.repository import ROOT

SPARK = "the Spark session"
ENGINE = "the engine of the example DAGs"


class ByFile(LoadScopeScheduling):
    """A file's tests stay together, for what they share; so do all files that share a Spark."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid.split("::", 1)[0], sessions=spark_sessions(self.config))


def spark_sessions(config: pytest.Config) -> int:
    """The number of Spark sessions. The slow tests on one session would take longer than all others."""
    return 2 if config.option.markexpr.startswith("slow") else 1


@cache
def scope_of(file: str, *, sessions: int = 1) -> str:
    """Files of equal scope run one after the other on one worker."""
    if file.startswith("tests/airflow_dags/"):
        return ENGINE if re.search(r"\bengine: dict\b", (ROOT / file).read_text()) else file
    if not file.startswith("tests/spark/"):
        return file
    sharing = _files_that_share_a_session()
    if file not in sharing:
        return file
    number = sharing.index(file) % sessions
    return f"{SPARK} {number}" if number else SPARK


@cache
def _files_that_share_a_session() -> list[str]:
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests/spark").glob("test_*.py")
        if re.search(r"\bspark: SparkSession\b", path.read_text())
    )
