"""A server of the S3 interface, as its clients see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from obstore.store import S3Store

from tests.support.emulators.process import with_http


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """Where an S3 server answers and what it takes as credentials."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"

    def store(self, container: str, *, endpoint: str | None = None, **options: Any) -> S3Store:
        """Obstore's view of a bucket; `endpoint` names a proxy in front, `options` are obstore's own."""
        return S3Store(
            container,
            endpoint=endpoint or self.endpoint,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region=self.region,
            virtual_hosted_style_request=False,
            **with_http(options),
        )

    def client(self, *, endpoint: str | None = None) -> Any:
        """A boto3 client that sends every request once.

        With `max_attempts` in place of `total_max_attempts`, boto3 still sends two.
        """
        return boto3.client(
            "s3",
            endpoint_url=endpoint or self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=self.region,
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def create_container(self, name: str) -> None:
        """Make a bucket."""
        client = self.client()
        try:
            client.create_bucket(Bucket=name)
        finally:
            client.close()
