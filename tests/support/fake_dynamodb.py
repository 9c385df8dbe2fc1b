"""A DynamoDB table in memory, as far as delta-storage's layout needs one, that fails on command.

It stands for boto3's client, or behind a server for what boto3 itself does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from botocore.exceptions import ClientError, ConnectionClosedError

Item = dict[str, dict[str, str]]
Key = tuple[str, str]

CONDITION = "attribute_not_exists(fileName)"


def client_error(code: str, operation: str = "PutItem") -> ClientError:
    """The error that boto3 raises for an answer."""
    return ClientError({"Error": {"Code": code, "Message": ""}}, operation)


def lost_answer() -> ConnectionClosedError:
    """The error of a request whose answer did not arrive."""
    return ConnectionClosedError(endpoint_url="dynamodb")


class FakeDynamoDb:
    """What `boto3.client("dynamodb")` is to the store; an inconsistent read misses the newest write.

    Attributes:
        items: by table path and file name.
        puts: the items of all put requests that were carried out, in order.
        before: called at the beginning of each request with its operation; may raise.
        after: called when the request has been carried out; may raise.
    """

    def __init__(self) -> None:
        self.items: dict[Key, Item] = {}
        self.puts: list[Item] = []
        self.before: Callable[[str], None] = lambda operation: None
        self.after: Callable[[str], None] = lambda operation: None
        self._replica: dict[Key, Item] = {}

    def put_item(self, **arguments: Any) -> dict[str, Any]:
        self.before("put_item")
        item: Item = arguments["Item"]
        key = (item["tablePath"]["S"], item["fileName"]["S"])
        condition = arguments.get("ConditionExpression")
        assert condition in (None, CONDITION)
        if condition is not None and key in self.items:
            raise client_error("ConditionalCheckFailedException")
        self.put(item)
        self.after("put_item")
        return {}

    def get_item(self, **arguments: Any) -> dict[str, Any]:
        self.before("get_item")
        key = arguments["Key"]
        found = self._seen(arguments).get((key["tablePath"]["S"], key["fileName"]["S"]))
        return {} if found is None else {"Item": found}

    def query(self, **arguments: Any) -> dict[str, Any]:
        self.before("query")
        assert arguments["KeyConditionExpression"] == "tablePath = :path"
        path = arguments["ExpressionAttributeValues"][":path"]["S"]
        found = sorted(key for key in self._seen(arguments) if key[0] == path)
        if not arguments.get("ScanIndexForward", True):
            found.reverse()
        return {"Items": [self.items[key] for key in found[: arguments["Limit"]]]}

    def put(self, item: Item) -> None:
        """Write an item as another writer would."""
        self._replica = dict(self.items)
        self.items[item["tablePath"]["S"], item["fileName"]["S"]] = item
        self.puts.append(item)

    def _seen(self, arguments: dict[str, Any]) -> dict[Key, Item]:
        return self.items if arguments.get("ConsistentRead") else self._replica


@contextmanager
def served(dynamo: FakeDynamoDb) -> Iterator[str]:
    """The address of a server of the table; an error that is not the table's own ends the connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            operation = self.headers["X-Amz-Target"].partition(".")[2]
            names = {"PutItem": "put_item", "GetItem": "get_item", "Query": "query"}
            try:
                status, told = 200, getattr(dynamo, names[operation])(**asked)
            except ClientError as error:
                status, told = 400, {"__type": f"x#{error.response['Error']['Code']}"}
            except ConnectionClosedError:
                self.close_connection = True
                return
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True  # clients keep connections open
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
