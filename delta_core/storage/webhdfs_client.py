"""WebHDFS requests to the NameNodes and DataNodes of one HDFS, and their failures.

A request goes to a NameNode. For data, its response is a redirect to a DataNode, which this client follows
itself so that bytes are sent once and only there. Writers distinguish two failures: a server answered that
it did not carry out the request, or the outcome is not known.
"""

from __future__ import annotations

import json
import logging
import os
import re
import ssl
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, quote_plus, urlencode, urlsplit

from delta_core.clock import Clock
from delta_core.errors import ConfigurationError
from delta_core.forks import renew_lock_in_children
from delta_core.storage.request_meter import METER
from delta_core.storage.service_address import require_service_address
from delta_core.storage.webhdfs_address import WebHdfsAddress

if TYPE_CHECKING:
    import httpx

READ_TRIES = 3
FIRST_PAUSE_SECONDS = 0.2
PAUSE_GROWTH = 4

# Exceptions of a NameNode that is not active.
_NOT_THE_ACTIVE = frozenset({"StandbyException", "ObserverRetryOnActiveException"})
_PASSING = _NOT_THE_ACTIVE | {"RetriableException"}
_MAX_CAUSE_CHARACTERS = 500
_BYTES = "application/octet-stream"

T = TypeVar("T")


class WebHdfsRefusedError(Exception):
    """A server answered with a failure.

    Attributes:
        status: the HTTP status.
        exception: the simple name of the Java exception class; empty when the response is not WebHDFS's.
        message: the first line of the exception's message, without secrets.
    """

    def __init__(self, *, status: int, exception: str, message: str) -> None:
        super().__init__(f"{exception}: {message}" if exception else f"HTTP {status}: {message}")
        self.status = status
        self.exception = exception
        self.message = message


class WebHdfsSilentError(Exception):
    """No response arrived: no connection, a time-out, a broken connection.

    Attributes:
        sent: False when it is certain that no server received the request.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """The status of one path from a NameNode; `name` is empty when the path itself was requested."""

    name: str
    kind: str
    size_bytes: int
    modified_ms: int


class WebHdfsClient:
    """The WebHDFS operations that a store needs, on absolute decoded HDFS paths.

    Creating a client sends nothing, and raises ConfigurationError when httpx is not installed. Every
    operation raises only WebHdfsRefusedError or WebHdfsSilentError. Read operations make up to `READ_TRIES`
    attempts with growing pauses while no server answers, or a server answers that it cannot do so now. Write
    operations make one attempt. A NameNode that is not active, or that cannot be connected to, has done
    nothing, so the next one is tried. Safe to use from several threads, and after a fork.
    """

    def __init__(self, address: WebHdfsAddress, *, clock: Clock) -> None:
        _require_httpx()
        self._address = address
        self._clock = clock
        self._active = 0
        self._lock = threading.Lock()
        renew_lock_in_children(self)
        self._connections: httpx.Client | None = None
        self._process = 0

    # ------------------------------------------------------------ operations

    def status(self, path: str) -> FileStatus:
        """Kind, size and time of a path. One request."""
        answer = self._retried(lambda: self._ask("GET", "GETFILESTATUS", path))
        return _status(answer, _field(answer, "FileStatus"))

    def listing(self, path: str) -> list[FileStatus]:
        """All entries of a directory, or the entry of a file. One request for any number of entries."""
        answer = self._retried(lambda: self._ask("GET", "LISTSTATUS", path))
        return _statuses(answer, "FileStatuses", "FileStatus")

    def listing_page(self, path: str, start_after: str | None) -> tuple[list[FileStatus], bool]:
        """The next entries after a name, and whether there are more. One request."""
        given = {} if start_after is None else {"startAfter": start_after}
        answer = self._retried(lambda: self._ask("GET", "LISTSTATUS_BATCH", path, **given))
        entries = _statuses(answer, "DirectoryListing", "partialListing", "FileStatuses", "FileStatus")
        return entries, bool(_field(answer, "DirectoryListing", "remainingEntries"))

    def fetch(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes of a file, or the bytes of a range that exist. One request to each kind of node.

        One more for a whole file when the response does not mark its end, as with some gateways: a broken
        connection then looks like the end, so the length is requested from the NameNode.
        """
        given = {} if length is None else {"offset": str(offset), "length": str(length)}

        def once() -> bytes:
            answer = self._ask("GET", "OPEN", path, **given)
            if answer.status_code >= 300:
                answer = self._successful(self._exchange("GET", _location(answer)))
            if not answer.headers.get("content-type", "").startswith(_BYTES):
                raise _unexpected(answer, "the response is not the content of a file")
            if length is None and not _marks_its_end(answer):
                known = self._ask("GET", "GETFILESTATUS", path)
                size_bytes = _status(known, _field(known, "FileStatus")).size_bytes
                if len(answer.content) != size_bytes:
                    raise WebHdfsSilentError(
                        f"{len(answer.content)} bytes arrived instead of {size_bytes}", sent=True
                    )
            return answer.content

        return self._retried(once)

    def create(self, path: str, body: bytes | Iterable[bytes], *, size_bytes: int) -> None:
        """Write a new file and its parent directories. One request to each kind of node."""
        given = {"overwrite": "false", "createparent": "true"}
        answer = self._ask("PUT", "CREATE", path, **given)
        if answer.status_code < 300:
            raise _unexpected(answer, "the NameNode returned no DataNode to write to")
        headers = {"Content-Type": _BYTES, "Content-Length": str(size_bytes)}
        answer = self._successful(self._exchange("PUT", _location(answer), content=body, headers=headers))
        if answer.status_code != 201:
            raise _unexpected(answer, "the DataNode did not report that it created the file")

    def rename(self, source: str, target: str, *, overwrite: bool) -> bool:
        """Rename a file in one step. One request.

        Returns:
            False when the response differs from a NameNode's response to a rename with options. The effect
            must then be determined from the files that exist.
        """
        options = "OVERWRITE" if overwrite else "NONE"
        answer = self._ask("PUT", "RENAME", source, destination=target, renameoptions=options)
        return answer.status_code == 200 and not answer.content

    def delete(self, path: str, *, tries: int = 1) -> bool:
        """Delete a file or an empty directory. Returns whether it existed. One request per attempt."""
        answer = self._retried(lambda: self._ask("DELETE", "DELETE", path, recursive="false"), tries=tries)
        return bool(_field(answer, "boolean"))

    # ------------------------------------------------------------ requests

    def _retried(self, once: Callable[[], T], *, tries: int = READ_TRIES) -> T:
        pause = FIRST_PAUSE_SECONDS
        while True:
            tries -= 1
            try:
                return once()
            except WebHdfsSilentError:
                if tries <= 0:
                    raise
            except WebHdfsRefusedError as error:
                if tries <= 0 or (
                    error.status < 500 and error.status != 429 and error.exception not in _PASSING
                ):
                    raise
            self._clock.sleep(pause)
            pause *= PAUSE_GROWTH

    def _ask(self, method: str, operation: str, path: str, **parameters: str) -> httpx.Response:
        """Send to the NameNode that answered last, then to the others while nothing has been done."""
        if self._address.delegation_token:
            parameters["delegation"] = self._address.delegation_token
        elif self._address.user:
            parameters["user.name"] = self._address.user
        query = urlencode({"op": operation, **parameters}, quote_via=quote)
        endpoints = self._address.endpoints
        first = self._active
        failure: WebHdfsRefusedError | WebHdfsSilentError | None = None
        for step in range(len(endpoints)):
            index = (first + step) % len(endpoints)
            url = f"{endpoints[index]}/webhdfs/v1{quote(path or '/', safe='/')}?{query}"
            try:
                answer = self._successful(self._exchange(method, url))
            except WebHdfsRefusedError as error:
                if error.exception not in _NOT_THE_ACTIVE:
                    raise
                failure = failure or error
            except WebHdfsSilentError as error:
                if error.sent and method != "GET":
                    raise
                failure = error
            else:
                self._active = index
                return answer
        assert failure is not None, "at least one endpoint is configured"
        raise failure

    def _exchange(
        self,
        method: str,
        url: str,
        *,
        content: bytes | Iterable[bytes] | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        import httpx

        # Raise errors without their origin: it contains the request's URL, which may contain the token.
        sent = 0 if headers is None else int(headers.get("Content-Length", "0"))
        METER.count(bytes_written=sent)
        try:
            answer = self._http().request(method, url, content=content, headers=headers)
            METER.count(0, bytes_read=len(answer.content))
            return answer
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise WebHdfsSilentError(self._message(error, url), sent=False) from None
        except httpx.InvalidURL:
            raise WebHdfsRefusedError(
                status=400, exception="InvalidPathException", message="the path is too long for a URL"
            ) from None
        except (httpx.HTTPError, ValueError) as error:
            # ValueError: an invalid host name, or a response that the client does not expect.
            raise WebHdfsSilentError(self._message(error, url), sent=True) from None

    def _successful(self, answer: httpx.Response) -> httpx.Response:
        """The response, if it is a success or redirects to a DataNode."""
        if answer.status_code < 300 or (
            answer.status_code in (302, 303, 307) and "location" in answer.headers
        ):
            return answer
        exception, message = "", "the response is not one of WebHDFS"
        try:
            remote = json.loads(answer.content)["RemoteException"]
            exception, message = str(remote["exception"]), str(remote.get("message", ""))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            pass
        line = self._redacted((message.splitlines() or [""])[0])[:_MAX_CAUSE_CHARACTERS]
        raise WebHdfsRefusedError(
            status=answer.status_code, exception=self._redacted(exception), message=line
        )

    def _http(self) -> httpx.Client:
        # Two processes that share a connection would read each other's responses.
        if self._connections is None or self._process != os.getpid():
            with self._lock:
                if self._connections is None or self._process != os.getpid():
                    connections = _new_connections(self._address.timeout_seconds)
                    weakref.finalize(self, connections.close)
                    self._connections, self._process = connections, os.getpid()
        return self._connections

    def _message(self, error: Exception, url: str) -> str:
        try:
            parts = urlsplit(url)
            place = f"{parts.hostname}:{parts.port}"
        except ValueError:
            place = "an invalid host"
        return f"{type(error).__name__} at {place}: {self._redacted(str(error))}"

    def _redacted(self, string: str) -> str:
        """A message of a server or the client without the token, in any encoding."""
        token = self._address.delegation_token
        if token:
            for written in {token, quote(token), quote(token, safe=""), quote_plus(token)}:
                string = string.replace(written, "...")
        return _without_secrets(string)


class _SecretsHidden(logging.Filter):
    """Removes tokens from the URLs and headers that httpx logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        string = record.getMessage()
        hidden = _without_secrets(string)
        if hidden != string:
            record.msg, record.args = hidden, None
        return True


_SECRETS_HIDDEN = _SecretsHidden()
_TOKEN = re.compile(r"((?:delegation|token)(?:=|%3D))[^&\s'\"\\]+", re.IGNORECASE)


def _without_secrets(string: str) -> str:
    return _TOKEN.sub(r"\1...", string)


@cache
def _tls() -> ssl.SSLContext:
    """The TLS context, created once: creating it reads every certificate of the system."""
    import httpx

    return httpx.create_ssl_context()


def _require_httpx() -> None:
    try:
        import httpx  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "HDFS needs the package httpx, which is not installed.",
            cause=str(error),
            fix="Run pip install deltaward[hdfs].",
        ) from error


def _new_connections(timeout_seconds: float) -> httpx.Client:
    import httpx

    for name in ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy"):
        logging.getLogger(name).addFilter(_SECRETS_HIDDEN)
    return httpx.Client(
        verify=_tls(),
        timeout=timeout_seconds,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        # Each request contains its own credentials. A NameNode's cookie would go to every port of its host.
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        limits=httpx.Limits(max_connections=64, max_keepalive_connections=32),
    )


def _location(answer: httpx.Response) -> str:
    """The DataNode's URL. Any host of a service is allowed, but not http after https."""
    import httpx

    location = str(answer.headers["location"])
    safe = ("https",) if answer.request.url.scheme == "https" else ("http", "https")
    try:
        target = urlsplit(location)
        host, _ = target.hostname, target.port
        httpx.URL(location)  # raises for an invalid host name
        if target.scheme in safe and host and "@" not in target.netloc:
            require_service_address("location", f"{target.scheme}://{target.netloc}")
            return location
    except (ValueError, httpx.InvalidURL, ConfigurationError):
        raise _unexpected(answer, "a redirect to a forbidden address is not followed") from None
    raise _unexpected(answer, f"a redirect to {target.scheme}://{host} is not followed")


def _marks_its_end(answer: httpx.Response) -> bool:
    """Whether the HTTP client detects a response that is cut off."""
    chunked = "chunked" in answer.headers.get("transfer-encoding", "").lower()
    return chunked or "content-length" in answer.headers


def _unexpected(answer: httpx.Response, message: str) -> WebHdfsRefusedError:
    return WebHdfsRefusedError(status=answer.status_code, exception="", message=message)


def _field(answer: httpx.Response, *keys: str) -> Any:
    try:
        value = json.loads(answer.content)
        for key in keys:
            value = value[key]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _unexpected(answer, f"the response has no {'.'.join(keys)}") from None
    return value


def _statuses(answer: httpx.Response, *keys: str) -> list[FileStatus]:
    entries = _field(answer, *keys)
    if not isinstance(entries, list):
        raise _unexpected(answer, f"{'.'.join(keys)} is not a list")
    return [_status(answer, entry) for entry in entries]


def _status(answer: httpx.Response, entry: Any) -> FileStatus:
    try:
        status = FileStatus(
            name=str(entry["pathSuffix"]),
            kind=str(entry["type"]),
            size_bytes=int(entry["length"]),
            modified_ms=int(entry["modificationTime"]),
        )
    except (LookupError, TypeError, ValueError, OverflowError):
        raise _unexpected(answer, "an entry is not a FileStatus") from None
    if status.size_bytes < 0:
        raise _unexpected(answer, "an entry has a negative length")
    return status
