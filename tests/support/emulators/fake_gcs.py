"""fake-gcs-server, a Google Cloud Storage in memory, behind a door that speaks the XML interface."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from obstore.store import GCSStore

from tests.support.emulators.gcs_xml import XmlDoor
from tests.support.emulators.installation import program
from tests.support.emulators.process import LOOPBACK, running, speaks_http, with_http

NAME = "fake-gcs-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsServer:
    """Where the XML interface answers, and the JSON interface behind it; neither asks for credentials."""

    endpoint: str
    json_endpoint: str

    def store(self, container: str, *, endpoint: str | None = None, **options: Any) -> GCSStore:
        """Obstore's view of a bucket; `endpoint` names a proxy in front, `options` are obstore's own."""
        # Without an account obstore asks the cloud's metadata address for one, even when nothing is signed.
        account = {"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True}
        return GCSStore(
            container,
            service_account_key=json.dumps({**account, "gcs_base_url": endpoint or self.endpoint}),
            **with_http(options),
        )

    def create_container(self, name: str) -> None:
        """Make a bucket."""
        connection = http.client.HTTPConnection(urlsplit(self.json_endpoint).netloc, timeout=300)
        try:
            body = json.dumps({"name": name})
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/storage/v1/b?project=tests", body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise RuntimeError(f"fake-gcs-server answered {answer.status} to a new bucket: {text}")


@contextlib.contextmanager
def fake_gcs(folder: Path) -> Iterator[GcsServer]:
    """A server without buckets; its objects are in memory, and `folder` gets its log alone.

    It ignores the preconditions of a rewrite, so the door refuses copies.
    """

    def command(port: int) -> list[str]:
        address = ["-scheme", "http", "-host", LOOPBACK, "-port", str(port)]
        return [
            *[str(program(NAME)), "-backend", "memory", *address],
            *["-public-host", f"{LOOPBACK}:{port}", "-log-level", "warn"],
        ]

    def ready(port: int) -> bool:
        return speaks_http(port, path="/storage/v1/b?project=tests")

    with running(command, folder=folder, ready=ready) as port, XmlDoor(upstream_port=port) as door:
        yield GcsServer(endpoint=f"http://{LOOPBACK}:{door.port}", json_endpoint=f"http://{LOOPBACK}:{port}")
