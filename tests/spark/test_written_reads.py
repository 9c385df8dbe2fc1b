"""A sample of tables that we write with several features each: Spark reads every version as delta_core does.

`make soak-written-reads` takes every feature alone and every pair. The sample is drawn by DELTAWARD_SEED.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.support.feature_sets import FeatureSet, covering_sets
from tests.support.soak import SEED, SOAKING
from tests.support.spark_reads import check_written_table
from tests.support.written_features import all_ways, excluding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def sets() -> list[FeatureSet]:
    """Under `make soak-written-reads` every feature alone and 150 sets of every pair, else one set."""
    names = frozenset(all_ways())
    rng = random.Random(f"{SEED}:reads")
    if SOAKING:
        singles = [frozenset({name}) for name in sorted(names)]
        return [*singles, *covering_sets(rng, 150, names, excluding(names))]
    return rng.sample(covering_sets(rng, 150, names, excluding(names)), 1)


@pytest.mark.parametrize(
    ("number", "features"),
    [pytest.param(n, one, id=f"{n}:{'+'.join(sorted(one))}") for n, one in enumerate(sets())],
)
def test_spark_reads_what_we_wrote(
    spark: SparkSession, number: int, features: FeatureSet, record_property: pytest.RecordProperty
) -> None:
    counts = check_written_table(spark, f"{SEED}:{number}", sorted(features), operations=20 if SOAKING else 5)
    for name, count in counts.items():
        record_property(name, str(count))
