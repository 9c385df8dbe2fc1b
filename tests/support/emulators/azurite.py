"""Azurite's blob service: it honours `If-None-Match: *` on Put Blob, also under a race.

It has no hierarchical (DFS) endpoint, so renames of ADLS cannot be tested with it.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from obstore.store import AzureStore

from tests.support.emulators.installation import node_command
from tests.support.emulators.process import LOOPBACK, running, speaks_http, with_http

NAME = "azurite"
_API_VERSION = "2023-11-03"


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureServer:
    """Where a blob service answers, its account's name included, and that account's key."""

    endpoint: str
    account: str
    key: str

    def store(self, container: str, *, endpoint: str | None = None, **options: Any) -> AzureStore:
        """Obstore's view of a container; `endpoint` names a proxy in front, `options` are obstore's own."""
        return AzureStore(
            container,
            endpoint=endpoint or self.endpoint,
            account_name=self.account,
            account_key=self.key,
            **with_http(options),
        )

    def create_container(self, name: str) -> None:
        """Make a container, which obstore cannot: one signed request."""
        date = email.utils.formatdate(usegmt=True)
        # The account stands twice: as the signer's name, and as the first part of a path-style address.
        resource = f"/{self.account}/{self.account}/{name}\nrestype:container"
        headers = f"x-ms-date:{date}\nx-ms-version:{_API_VERSION}\n"
        signed = "\n".join(["PUT", *[""] * 11, headers + resource])
        digest = hmac.new(base64.b64decode(self.key), signed.encode(), hashlib.sha256).digest()
        connection = http.client.HTTPConnection(urlsplit(self.endpoint).netloc, timeout=300)
        try:
            connection.request(
                "PUT",
                f"/{self.account}/{name}?restype=container",
                headers={
                    "Authorization": f"SharedKey {self.account}:{base64.b64encode(digest).decode()}",
                    "x-ms-date": date,
                    "x-ms-version": _API_VERSION,
                    "Content-Length": "0",
                },
            )
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status != http.client.CREATED:
            raise RuntimeError(f"azurite answered {answer.status} to a new container: {text}")


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[AzureServer]:
    """A blob service with its data in `folder/blobs` and one account of its own."""
    blobs = folder / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    account, key = "deltawardtest", base64.b64encode(secrets.token_bytes(64)).decode()

    def command(port: int) -> list[str]:
        place = ["--location", str(blobs), "--blobHost", LOOPBACK, "--blobPort", str(port)]
        return [*node_command(NAME), *place, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]

    environment = {"AZURITE_ACCOUNTS": f"{account}:{key}"}
    with running(command, folder=folder, ready=speaks_http, environment=environment) as port:
        yield AzureServer(endpoint=f"http://{LOOPBACK}:{port}/{account}", account=account, key=key)
