"""The six kinds of store, each with a server of its own, as a URI and options that users write."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.emulators.azurite import azurite
from tests.support.emulators.dynalite import dynalite
from tests.support.emulators.fake_gcs import fake_gcs
from tests.support.emulators.minidfs import minidfs
from tests.support.emulators.s3 import S3Server
from tests.support.emulators.s3rver import s3rver
from tests.support.emulators.versitygw import versitygw

BUCKET = "tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Somewhere to put tables.

    Attributes:
        name: of the kind of store.
        base: the URI of what the tables are below.
        endpoint: the address of the server that decides who has a version; None for a local directory.
        endpoint_option: the option that names it.
        options: all storage options, the endpoint among them.
    """

    name: str
    base: str
    endpoint: str | None
    endpoint_option: str
    options: Mapping[str, str]

    def new_table(self) -> str:
        """The URI of a table that is not there yet."""
        return f"{self.base}/table-{uuid.uuid4()}"

    def through(self, endpoint: str) -> dict[str, str]:
        """The options with another address of the same server, such as a proxy's."""
        return {**self.options, self.endpoint_option: endpoint}


@contextmanager
def local_place(folder: Path) -> Iterator[Place]:
    """A directory."""
    yield Place(name="local", base=str(folder / "tables"), endpoint=None, endpoint_option="", options={})


@contextmanager
def s3_place(folder: Path) -> Iterator[Place]:
    """S3 with conditional writes."""
    with versitygw(folder) as server:
        server.create_container(BUCKET)
        yield _s3("s3", server)


@contextmanager
def unsafe_s3_place(folder: Path) -> Iterator[Place]:
    """An S3 server that ignores preconditions."""
    with s3rver(folder) as server:
        server.create_container(BUCKET)
        yield _s3("s3rver", server)


@contextmanager
def dynamodb_place(folder: Path) -> Iterator[Place]:
    """S3 whose commits DynamoDB decides."""
    with versitygw(folder / "s3") as objects, dynalite(folder / "dynamodb") as entries:
        objects.create_container(BUCKET)
        create_log_table(entries.client())
        yield Place(
            name="s3+dynamodb",
            base=f"s3://{BUCKET}",
            endpoint=entries.endpoint,
            endpoint_option="endpoint_url_dynamodb",
            options={
                **_s3("s3", objects).options,
                "AWS_S3_LOCKING_PROVIDER": "dynamodb",
                "endpoint_url_dynamodb": entries.endpoint,
            },
        )


@contextmanager
def gcs_place(folder: Path) -> Iterator[Place]:
    """Google Cloud Storage."""
    with fake_gcs(folder) as server:
        server.create_container(BUCKET)
        # An account that needs no token, or the client would ask the cloud's metadata address for one.
        account = {"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True}
        options = {"base_url": server.endpoint, "service_account_key": json.dumps(account)}
        yield Place(
            name="gcs",
            base=f"gs://{BUCKET}",
            endpoint=server.endpoint,
            endpoint_option="base_url",
            options=options,
        )


@contextmanager
def azure_place(folder: Path) -> Iterator[Place]:
    """Azure Blob Storage."""
    with azurite(folder) as server:
        server.create_container(BUCKET)
        options = {
            "account_name": server.account,
            "account_key": server.key,
            "endpoint": server.endpoint,
        }
        yield Place(
            name="azure",
            base=f"az://{BUCKET}",
            endpoint=server.endpoint,
            endpoint_option="endpoint",
            options=options,
        )


@contextmanager
def hdfs_place(folder: Path) -> Iterator[Place]:
    """HDFS through WebHDFS."""
    with minidfs(folder) as server:
        yield Place(
            name="hdfs",
            base=f"hdfs://{server.rpc_address}/tables",
            endpoint=server.endpoint,
            endpoint_option="webhdfs_endpoint",
            options={"webhdfs_endpoint": server.endpoint, "user": server.user},
        )


Opener = Callable[[Path], AbstractContextManager[Place]]

PLACES: Mapping[str, tuple[Opener, tuple[str, ...]]] = {
    "local": (local_place, ()),
    "s3": (s3_place, ("versitygw",)),
    "s3+dynamodb": (dynamodb_place, ("versitygw", "dynalite")),
    "gcs": (gcs_place, ("fake-gcs-server",)),
    "azure": (azure_place, ("azurite",)),
    "hdfs": (hdfs_place, ("minidfs",)),
}
"""How each opens, and the servers that must be installed for it."""


def create_log_table(client: object) -> None:
    """The DynamoDB table of delta-storage, with its two keys."""
    client.create_table(  # type: ignore[attr-defined] # boto3 makes its clients at run time
        TableName="delta_log",
        KeySchema=[
            {"AttributeName": "tablePath", "KeyType": "HASH"},
            {"AttributeName": "fileName", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "tablePath", "AttributeType": "S"},
            {"AttributeName": "fileName", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )


def _s3(name: str, server: S3Server) -> Place:
    options = {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_ACCESS_KEY_ID": server.access_key,
        "AWS_SECRET_ACCESS_KEY": server.secret_key,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    return Place(
        name=name,
        base=f"s3://{BUCKET}",
        endpoint=server.endpoint,
        endpoint_option="AWS_ENDPOINT_URL",
        options=options,
    )
