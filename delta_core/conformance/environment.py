"""The environment of a run: the machine, and the client programs of the store."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from delta_core.storage.uri import uri_scheme
from delta_core.version import VERSION

_CLIENTS = {
    "file": "Python's files",
    "hdfs": "Python's http.client",
    "webhdfs": "Python's http.client",
    "swebhdfs": "Python's http.client",
}
_SHARED_CLIENT = "obstore"
_DYNAMODB_CLIENT = "boto3"


def surroundings(uri: str) -> Mapping[str, str]:
    """Names and versions for a report on the store of a URI. Makes no request.

    Does not include the server's version, since the clients do not provide it.
    """
    return {
        "machine": platform.platform(),
        "python": platform.python_version(),
        "deltaward": VERSION,
        "client": _client(uri_scheme(uri) or "file"),
    }


def _client(scheme: str) -> str:
    if scheme in _CLIENTS:
        return _CLIENTS[scheme]
    # boto3 is imported only when it is used for credentials or for DynamoDB's entries.
    names = [_SHARED_CLIENT, *([_DYNAMODB_CLIENT] if _DYNAMODB_CLIENT in sys.modules else [])]
    return ", ".join(f"{name} {_version(name)}" for name in names)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"
