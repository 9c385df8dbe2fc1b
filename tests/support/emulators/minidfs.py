"""A small HDFS: one NameNode and one DataNode in a JVM, reached through WebHDFS.

`RENAME` with `renameoptions=NONE` lets one of many racing writers have the name. `CREATE` without overwrite
does so too, but others see what it has written so far.
"""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tests.support.emulators.installation import java, program
from tests.support.emulators.process import LOOPBACK, free_port, running

NAME = "minidfs"
_SECONDS_TO_START = 120.0

# Whoever closes a file asks the NameNode whether it knows of the last block. It often does not yet, and HDFS
# asks again after 400 ms; here after 4 ms, each time after twice as long, and with more tries.
_CLOSES = "dfs.client.block.write.locateFollowingBlock"
_PROPERTIES = {
    "dfs.permissions.enabled": "false",
    f"{_CLOSES}.initial.delay.ms": "4",
    f"{_CLOSES}.retries": "12",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebHdfsAnswer:
    """The status, the body (and its JSON document, where it is one) and the address that was pointed to."""

    status: int
    body: bytes
    document: dict[str, Any]
    location: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsServer:
    """Where the NameNode answers, and the user that its files belong to; permissions are not checked."""

    endpoint: str
    rpc_address: str
    user: str = "deltaward"

    def call(self, method: str, path: str, *, op: str, **query: str) -> WebHdfsAnswer:
        """One WebHDFS request to the NameNode; a redirection is answered, not followed."""
        words = urlencode({"op": op, "user.name": self.user, **query})
        return _send(method, f"{self.endpoint}/webhdfs/v1{quote(path)}?{words}", b"")

    def create(self, path: str, body: bytes) -> None:
        """Write a new file; the DataNode that the NameNode points to takes the bytes."""
        pointed = self.call("PUT", path, op="CREATE", overwrite="false")
        done = _send("PUT", pointed.location, body) if pointed.location else pointed
        if done.status != http.client.CREATED:
            raise RuntimeError(f"HDFS answered {done.status} to a new file {path}: {done.document}")

    def read(self, path: str) -> bytes:
        """A file's bytes, from the DataNode that the NameNode points to."""
        pointed = self.call("GET", path, op="OPEN")
        done = _send("GET", pointed.location, b"") if pointed.location else pointed
        if done.status != http.client.OK:
            raise RuntimeError(f"HDFS answered {done.status} to a read of {path}: {done.document}")
        return done.body


@contextlib.contextmanager
def minidfs(folder: Path) -> Iterator[HdfsServer]:
    """A cluster with its data in `folder/data`; it takes some 20 seconds to start."""
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    details = folder / "details.json"
    rpc_port = free_port()

    def command(port: int) -> list[str]:
        details.unlink(missing_ok=True)
        flags = ["-Xmx600m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        classes = ["-cp", f"{folder / 'conf'}:{program(NAME)}/*"]
        ports = ["-nnport", str(rpc_port), "-httpport", str(port)]
        return [
            *[java(), *flags, f"-Dtest.build.data={folder / 'data'}", *classes],
            *["org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1", *ports],
            *["-writeDetails", str(details)],
            *(word for name, value in _PROPERTIES.items() for word in ("-D", f"{name}={value}")),
        ]

    def ready(port: int) -> bool:
        if not details.exists():
            return False
        try:
            status = _send("GET", f"http://{LOOPBACK}:{port}/webhdfs/v1/?op=GETFILESTATUS", b"").status
        except (OSError, http.client.HTTPException):
            return False
        return status == http.client.OK

    with running(command, folder=folder, ready=ready, seconds=_SECONDS_TO_START) as port:
        yield HdfsServer(endpoint=f"http://{LOOPBACK}:{port}", rpc_address=f"{LOOPBACK}:{rpc_port}")


def _send(method: str, address: str, body: bytes) -> WebHdfsAnswer:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=600)
    try:
        headers = {"Content-Type": "application/octet-stream"}
        connection.request(method, f"{parts.path}?{parts.query}", body=body, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    described = "json" in (answer.getheader("Content-Type") or "") and text
    document = json.loads(text) if described else {}
    return WebHdfsAnswer(
        status=answer.status, body=text, document=document, location=answer.getheader("Location") or None
    )
