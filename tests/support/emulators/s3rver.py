"""s3rver, an S3 server that ignores `If-None-Match`: what a check of create-only writes has to find out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.support.emulators.installation import node_command
from tests.support.emulators.process import LOOPBACK, running, speaks_http
from tests.support.emulators.s3 import S3Server

NAME = "s3rver"


@contextlib.contextmanager
def s3rver(folder: Path) -> Iterator[S3Server]:
    """A server with its objects in `folder/buckets`; its only credentials are its own name."""
    buckets = folder / "buckets"
    buckets.mkdir(parents=True, exist_ok=True)

    def command(port: int) -> list[str]:
        place = ["--directory", str(buckets), "--address", LOOPBACK, "--port", str(port)]
        # It takes loopback hosts for buckets, and does not know today's signed headers.
        lenient = ["--silent", "--allow-mismatched-signatures", "--no-vhost-buckets"]
        return [*node_command(NAME), *place, *lenient]

    with running(command, folder=folder, ready=speaks_http) as port:
        yield S3Server(endpoint=f"http://{LOOPBACK}:{port}", access_key="S3RVER", secret_key="S3RVER")
