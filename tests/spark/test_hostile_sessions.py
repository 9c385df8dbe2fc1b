"""Every job gives what delta_core gives, however the session is set, and leaves the session as it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.hostile_jobs import loads, optimizes, run_all
from tests.support.hostile_sessions import HOSTILE, TOGETHER, set_so, together
from tests.support.soak import drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUICK, *_SLOW = TOGETHER


@pytest.mark.soak
@pytest.mark.parametrize("name", HOSTILE)
def test_every_job_in_a_hostile_session(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with set_so(spark, HOSTILE[name]):
        assert run_all(spark, tmp_path) == [0, 1, 2, 3, 4, 5, 9]
        loads(spark, tmp_path)


@pytest.mark.parametrize(
    "names",
    [_QUICK, *(pytest.param(names, marks=pytest.mark.slow) for names in drawn(_SLOW, usual=2))],
    ids=" and ".join,
)
def test_every_job_in_a_session_that_is_several(
    spark: SparkSession, tmp_path: Path, names: tuple[str, ...]
) -> None:
    with set_so(spark, together(*names)):
        assert run_all(spark, tmp_path) == [0, 1, 2, 3, 4, 5, 9]
        if names == _QUICK:
            loads(spark, tmp_path)


def test_each_session_is_run() -> None:
    assert sorted(name for names in TOGETHER for name in names) == sorted(HOSTILE)


@pytest.mark.slow
def test_optimizing_in_a_session_that_is_all_of_them(spark: SparkSession, tmp_path: Path) -> None:
    with set_so(spark, together(*HOSTILE)):
        assert optimizes(spark, tmp_path) == "OPTIMIZE"
