"""The S3 server of a demonstration: Versity's gateway over a directory, on loopback only."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping

from demo.layout import BUCKET, REPOSITORY, Layout, read_json, write_json
from demo.processes import LOOPBACK, DemoError, Service, free_port, start

PROGRAM = REPOSITORY / ".tools" / "emulators" / "versitygw" / "bin" / "versitygw"
_REGION = "us-east-1"


def start_object_store(layout: Layout) -> tuple[Service, int]:
    """Start the server with an empty bucket; returns it and its port.

    The bucket is a directory in `layout.buckets`. Its keys are random and stay in `layout.keys`.

    Raises:
        DemoError: the server is not installed.
    """
    if not PROGRAM.exists():
        raise DemoError(
            "The S3 server is not installed. Run `scripts/emulators.sh versitygw`, which needs Go."
        )
    (layout.buckets / BUCKET).mkdir(parents=True, exist_ok=True)
    port = free_port()
    keys = {
        "access": "deltaward-demo",
        "secret": secrets.token_hex(20),
        "endpoint": f"http://{LOOPBACK}:{port}",
    }
    write_json(layout.keys, keys)
    address = ["--port", f"{LOOPBACK}:{port}", "--region", _REGION, "--quiet"]
    service = start(
        "object-store",
        [str(PROGRAM), *address, "posix", str(layout.buckets)],
        layout=layout,
        # The keys are not arguments, because every user of the machine sees a process's arguments.
        environment={
            "PATH": os.environ.get("PATH", os.defpath),
            "ROOT_ACCESS_KEY": keys["access"],
            "ROOT_SECRET_KEY": keys["secret"],
        },
        cwd=layout.home,
    )
    return service, port


def s3_access(layout: Layout) -> Mapping[str, str]:
    """The environment in which every job and every executor reaches the server.

    Storage options could contain the same settings. In the environment, the keys are in no connection, no
    job specification and no Spark plan.
    """
    keys = read_json(layout.keys)
    return {
        "AWS_ACCESS_KEY_ID": keys["access"],
        "AWS_SECRET_ACCESS_KEY": keys["secret"],
        "AWS_ENDPOINT_URL": keys["endpoint"],
        "AWS_REGION": _REGION,
        "AWS_ALLOW_HTTP": "true",
    }
