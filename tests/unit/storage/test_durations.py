"""How long to wait, as users write it, reaches the client that takes seconds."""

from __future__ import annotations

import pytest

from delta_core.storage.s3_dynamodb import S3DynamoDbLogStore, open_s3_or_dynamodb
from delta_core.storage.store_options import seconds_of


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("60s", 60.0),
        ("1m 30s", 90.0),
        ("1h2min", 3720.0),
        ("1500ms", 1.5),
        ("1.5s", 1.5),
        ("60 seconds", 60.0),
        (None, 20.0),
        ("2 months", 20.0),
    ],
)
def test_a_duration_in_seconds(duration: str | None, seconds: float) -> None:
    assert seconds_of(duration, 20.0) == seconds


@pytest.mark.parametrize(
    ("options", "waits"),
    [({}, (10.0, 20.0)), ({"timeout": "3s", "connect_timeout": "500ms"}, (0.5, 3.0))],
)
def test_dynamodb_waits_as_long_as_the_options_say(
    options: dict[str, str], waits: tuple[float, float]
) -> None:
    keys = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
    store = open_s3_or_dynamodb("s3://bucket/table", {**keys, **options, "s3_locking_provider": "dynamodb"})
    assert isinstance(store, S3DynamoDbLogStore)
    for client in store._entries._clients():
        assert (client.meta.config.connect_timeout, client.meta.config.read_timeout) == waits
