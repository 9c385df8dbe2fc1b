"""dynalite, a DynamoDB in memory: conditional puts hold under a race, tables are there at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests.support.emulators.installation import node_command
from tests.support.emulators.process import LOOPBACK, running, speaks_http

NAME = "dynalite"


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoServer:
    """Where a DynamoDB server answers; it takes any credentials."""

    endpoint: str
    access_key: str = "deltaward-test"
    secret_key: str = "deltaward-test"
    region: str = "us-east-1"

    def client(self, *, endpoint: str | None = None) -> Any:
        """A boto3 client that sends every request once."""
        return boto3.client(
            "dynamodb",
            endpoint_url=endpoint or self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=self.region,
            config=Config(retries={"total_max_attempts": 1}),
        )


@contextlib.contextmanager
def dynalite(folder: Path) -> Iterator[DynamoServer]:
    """A server without tables; `folder` gets its log alone."""

    def command(port: int) -> list[str]:
        address = ["--host", LOOPBACK, "--port", str(port)]
        waits = [word for kind in ("create", "delete", "update") for word in (f"--{kind}TableMs", "0")]
        return [*node_command(NAME), *address, *waits]

    with running(command, folder=folder, ready=speaks_http) as port:
        yield DynamoServer(endpoint=f"http://{LOOPBACK}:{port}")
