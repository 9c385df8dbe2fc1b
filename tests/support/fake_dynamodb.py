"""A DynamoDB table in memory, as far as delta-storage's layout needs one, that fails on command."""

from __future__ import annotations

from collections.abc import Callable
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
