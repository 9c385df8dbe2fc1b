"""How a parallel run deals tests out to its workers."""

from __future__ import annotations

import re
from functools import cache

from xdist.scheduler import LoadScopeScheduling

from tests.support.repository import ROOT

SPARK = "the Spark session"
ENGINE = "the engine of the example DAGs"


class ByFile(LoadScopeScheduling):
    """A file's tests stay together, for what they share; so do all files that share a Spark."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid.split("::", 1)[0])


@cache
def scope_of(file: str) -> str:
    """Files of equal scope run one after the other on one worker."""
    if file.startswith("tests/airflow_dags/"):
        return ENGINE if re.search(r"\bengine: dict\b", (ROOT / file).read_text()) else file
    if not file.startswith("tests/spark/"):
        return file
    return SPARK if re.search(r"\bspark: SparkSession\b", (ROOT / file).read_text()) else file
