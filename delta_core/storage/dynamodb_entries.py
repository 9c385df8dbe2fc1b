"""The entries of delta-storage's DynamoDB table: they record which writer owns which version.

There is one item per commit, with the key `tablePath` (the table's path) and `fileName` (the commit's file
name). `tempPath` is the location of the commit's bytes until the commit file exists, `complete` (a string)
records whether it exists, and `expireTime` (seconds of the epoch; only on complete items) is when the item
may be deleted. The layout is that of delta-storage's `BaseExternalLogStore`, so that Spark with its
S3DynamoDBLogStore and this library exclude each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from delta_core.clock import Clock
from delta_core.errors import (
    AmbiguousWriteError,
    ConfigurationError,
    ObjectExistsError,
    StorageError,
    StorePermissionError,
    UnsafeStoreError,
    WriteRefusedError,
)
from delta_core.forks import renew_lock_in_children
from delta_core.storage.request_meter import METER

DEFAULT_TABLE = "delta_log"
"""delta-storage's default name of the DynamoDB table."""

DEFAULT_REGION = "us-east-1"
"""The default region of the DynamoDB table, as in delta-storage and in the S3 client."""

EXPIRES_AFTER_SECONDS = 86_400
"""How long a complete entry is kept: longer than any writer still looks for it."""

_PATIENT_ATTEMPTS = 3
_SPELLINGS = ("s3a", "s3", "s3n")
_DENIED = frozenset(
    {"AccessDeniedException", "UnrecognizedClientException", "MissingAuthenticationToken"}
    | {"MissingAuthenticationTokenException", "ExpiredTokenException", "InvalidSignatureException"}
    | {"IncompleteSignatureException", "InvalidClientTokenId"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One commit's entry.

    Attributes:
        file_name: such as `00000000000000000007.json`.
        temp_path: location of the commit's bytes, relative to `_delta_log`.
        complete: True when the commit file exists.
    """

    file_name: str
    temp_path: str
    complete: bool


class DynamoDbEntries:
    """The entries of one table. The clients are created at the first request.

    One client retries. The other makes one attempt and is used only to take a version: the first attempt of a
    client that retries may have succeeded, while the client reports the answer to its last attempt.

    Args:
        table_name: name of the DynamoDB table.
        bucket: bucket of the Delta table.
        path: path of the Delta table in the bucket.
        client_arguments: arguments for `boto3`'s client; without a region, boto3's own rules find it.
        clock: used to set the time when a complete entry expires.
        profile: profile of the shared AWS configuration.
        spelling: the URI scheme that the table's other writers use; None detects it.
        connect_seconds: time limit of a connection.
        read_seconds: time limit of a response.
    """

    def __init__(
        self,
        *,
        table_name: str,
        bucket: str,
        path: str,
        client_arguments: Mapping[str, Any],
        clock: Clock,
        profile: str | None = None,
        spelling: str | None = None,
        connect_seconds: float = 10.0,
        read_seconds: float = 20.0,
    ) -> None:
        self._table = table_name
        self._below = f"{bucket}/{path}" if path else bucket
        self._arguments = client_arguments
        self._clock = clock
        self._profile = profile
        self._spelling = spelling
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._lock = threading.Lock()
        renew_lock_in_children(self)
        self._made: tuple[Any, Any] | None = None
        self._process = os.getpid()
        self._known_path: str | None = f"{spelling}://{self._below}" if spelling else None

    def __repr__(self) -> str:
        return f"DynamoDbEntries({self._table!r}, {self._below!r})"

    def above(self) -> DynamoDbEntries:
        """The entries of a table in the directory above."""
        bucket, _, path = self._below.partition("/")
        return DynamoDbEntries(
            table_name=self._table,
            bucket=bucket,
            path=path.rpartition("/")[0],
            client_arguments=self._arguments,
            clock=self._clock,
            profile=self._profile,
            spelling=self._spelling,
            connect_seconds=self._connect_seconds,
            read_seconds=self._read_seconds,
        )

    def get(self, file_name: str) -> Entry | None:
        """The entry of a commit. One consistent read."""
        key = {"tablePath": {"S": self._path()}, "fileName": {"S": file_name}}
        answer = self._call("get_item", Key=key, ConsistentRead=True)
        return _entry(answer.get("Item"))

    def latest(self) -> Entry | None:
        """The newest entry. One consistent read."""
        return self._latest_below(self._path())

    def create(self, entry: Entry) -> None:
        """Take a version for the entry's writer, which decides the commit. One request, or two if unclear.

        Raises:
            ObjectExistsError: another writer has it.
            AmbiguousWriteError: it is not known which writer has the version.
            StorePermissionError, WriteRefusedError: nothing was written, and nothing will be written later.
        """
        item = self._item(entry)
        try:
            self._call("put_item", once=True, Item=item, ConditionExpression="attribute_not_exists(fileName)")
        except (StorePermissionError, WriteRefusedError):
            raise  # the definite answer to the only attempt
        except StorageError as error:
            # "Exists already" may also be the answer to our own request, when the network sent it twice.
            try:
                existing = self.get(entry.file_name)
            except StorageError:
                existing = None
                if isinstance(error, ObjectExistsError):
                    raise AmbiguousWriteError(
                        f"It is not known which writer created the entry of {entry.file_name}.",
                        cause=error.cause,
                        fix="Read the version to see which writer committed it.",
                    ) from error
            if existing is not None and existing.temp_path == entry.temp_path:
                return
            if existing is not None:
                raise ObjectExistsError(
                    f"Another writer has the entry of {entry.file_name}.",
                    fix="Read the version to see which writer created it.",
                ) from error
            raise AmbiguousWriteError(
                f"It is not known whether the entry of {entry.file_name} was created.",
                cause=error.cause or error.problem,
                fix="Read the version to see which writer committed it.",
            ) from error

    def complete(self, entry: Entry) -> None:
        """Record that the commit file exists. One request."""
        item = self._item(replace(entry, complete=True))
        expires = self._clock.now_ms() // 1000 + EXPIRES_AFTER_SECONDS
        self._call("put_item", Item={**item, "expireTime": {"N": str(expires)}})

    # ------------------------------------------------------------ helpers

    def _item(self, entry: Entry) -> dict[str, Any]:
        return {
            "tablePath": {"S": self._path()},
            "fileName": {"S": entry.file_name},
            "tempPath": {"S": entry.temp_path},
            "complete": {"S": "true" if entry.complete else "false"},
        }

    def _path(self) -> str:
        """The table's path in the other writers' spelling; entries in different spellings do not conflict."""
        with self._lock:
            if self._known_path is None:
                spelled = [f"{scheme}://{self._below}" for scheme in _SPELLINGS]
                used = [path for path in spelled if self._latest_below(path) is not None]
                if len(used) > 1:
                    raise UnsafeStoreError(
                        f"The DynamoDB table {self._table!r} has entries of one Delta table as "
                        + " and ".join(used)
                        + ".",
                        cause="Writers that spell the table differently do not exclude each other.",
                        fix="Let all writers use one scheme, remove the other entries, and pass the scheme "
                        "as the option dynamodb_scheme.",
                    )
                self._known_path = used[0] if used else spelled[0]
            return self._known_path

    def _latest_below(self, table_path: str) -> Entry | None:
        answer = self._call(
            "query",
            KeyConditionExpression="tablePath = :path",
            ExpressionAttributeValues={":path": {"S": table_path}},
            ConsistentRead=True,
            ScanIndexForward=False,
            Limit=1,
        )
        items = answer.get("Items") or [None]
        return _entry(items[0])

    def _call(self, operation: str, *, once: bool = False, **arguments: Any) -> Mapping[str, Any]:
        patient, single = self._clients()
        from botocore.exceptions import BotoCoreError, ClientError

        send = getattr(single if once else patient, operation)
        METER.count()
        try:
            answer: Mapping[str, Any] = send(TableName=self._table, **arguments)
            return answer
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            raise _translated(code, operation, self._table) from None
        except BotoCoreError as error:
            raise StorageError(
                f"DynamoDB did not carry out {operation} on {self._table!r}.",
                cause=type(error).__name__,
                fix="Check the endpoint, the region and the credentials, then repeat the operation.",
            ) from None

    def _clients(self) -> tuple[Any, Any]:
        """The client that retries, and the client that makes one attempt."""
        if self._made is None or self._process != os.getpid():
            try:
                import boto3
                from botocore.config import Config
                from botocore.exceptions import BotoCoreError
            except ImportError as error:
                raise ConfigurationError(
                    "S3 with DynamoDB cannot be used.",
                    cause="The package boto3 is not installed.",
                    fix="Install deltaward[dynamodb].",
                ) from error

            def client(attempts: int) -> Any:
                config = Config(
                    retries={"mode": "standard", "total_max_attempts": attempts},
                    connect_timeout=self._connect_seconds,
                    read_timeout=self._read_seconds,
                )
                return session.client("dynamodb", config=config, **arguments)

            try:
                session = boto3.session.Session(profile_name=self._profile)
                arguments = {"region_name": session.region_name or DEFAULT_REGION, **self._arguments}
                # Two processes that share the connections of one client would read each other's responses.
                self._made, self._process = (client(_PATIENT_ATTEMPTS), client(1)), os.getpid()
            except (BotoCoreError, ValueError) as error:
                raise ConfigurationError(
                    f"The client of the DynamoDB table {self._table!r} cannot be created.",
                    cause=type(error).__name__,
                    fix="Check the profile, the region and the endpoint.",
                ) from None
        return self._made


def _entry(item: Mapping[str, Any] | None) -> Entry | None:
    if not item:
        return None
    try:
        return Entry(
            file_name=item["fileName"]["S"],
            temp_path=item["tempPath"]["S"],
            complete=item["complete"]["S"] == "true",
        )
    except KeyError as error:
        raise StorageError(
            "An entry in the DynamoDB table does not have delta-storage's layout.",
            cause=f"The attribute {error} is missing.",
            fix="Check the table name in the option dynamo_table_name.",
        ) from None


def _translated(code: str, operation: str, table: str) -> StorageError:
    if code == "ConditionalCheckFailedException":
        return ObjectExistsError("The entry exists already.", fix="Read it to see which writer created it.")
    if code in _DENIED:
        return StorePermissionError(
            f"No permission for {operation} on the DynamoDB table {table!r}.",
            cause=code,
            fix="Allow GetItem, PutItem and Query on it.",
        )
    if code in ("ResourceNotFoundException", "ValidationException"):
        return WriteRefusedError(
            f"The DynamoDB table {table!r} cannot be used.",
            cause=code,
            fix="Create it with the hash key tablePath and the range key fileName, both strings. See "
            "docs/stores.md.",
        )
    return StorageError(
        f"DynamoDB did not carry out {operation} on {table!r}.", cause=code, fix="Repeat the operation."
    )
