"""A session that exists already stays as its owner has set it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from spark_jobs.session import get_session, is_connect
from tests.support.hostile_sessions import set_so

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
}


def here(call: Callable[[], SparkSession]) -> SparkSession:
    return call()


def in_a_thread(call: Callable[[], SparkSession]) -> SparkSession:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.mark.parametrize("run", [here, in_a_thread])
def test_an_existing_session_keeps_its_settings(
    spark: SparkSession, run: Callable[[Callable[[], SparkSession]], SparkSession]
) -> None:
    if is_connect(spark):
        pytest.skip("a Connect session is always new")
    name = spark.conf.get("spark.app.name")
    with set_so(spark, OWN):
        found = run(lambda: get_session(app_name="another", master="local[1]"))
        assert {key: found.conf.get(key) for key in OWN} == OWN
        assert {key: spark.conf.get(key) for key in OWN} == OWN
        assert spark.conf.get("spark.app.name") == name
        wanted = {"spark.sql.shuffle.partitions": "5", "spark.driver.memory": "9g"}
        memory = spark.conf.get("spark.driver.memory")
        run(lambda: get_session(conf=wanted))
        assert spark.conf.get("spark.sql.shuffle.partitions") == "5"
        assert spark.conf.get("spark.driver.memory") == memory
        spark.conf.set("spark.sql.shuffle.partitions", OWN["spark.sql.shuffle.partitions"])
