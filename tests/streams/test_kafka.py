"""The example of a bus that Kafka feeds, with a broker of the tests' own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_core import DeltaTable
from tests.support.delta_spark import by_delta_spark
from tests.support.kafka_broker import KafkaBroker, crc32c

pytestmark = [pytest.mark.extra, pytest.mark.spark]


def test_a_topic_arrives_exactly_once(tmp_path: Path) -> None:
    sent = [{"user": number, "city": f"c{number % 3}"} for number in range(1200)]
    messages = [json.dumps(event).encode() for event in sent]
    with KafkaBroker() as broker:
        broker.produce("users", *messages[:700], key=b"k")
        by_delta_spark("kafka", broker.address, str(tmp_path))
        broker.produce("users", *messages[700:])
        # The checkpoint continues; a batch that Spark does not know to be done is repeated.
        for path in (tmp_path / "checkpoints" / "users" / "commits").glob("*"):
            path.unlink()
        by_delta_spark("kafka", broker.address, str(tmp_path))
    rows = DeltaTable(str(tmp_path / "users")).to_pyarrow_table().sort_by("offset")
    assert rows.select(["user", "city"]).to_pylist() == sent
    assert rows["offset"].to_pylist() == list(range(1200))


def test_the_checksum_of_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283
