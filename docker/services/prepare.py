"""Prepares Airflow's database for this deployment: its tables, the pools, the connection `deltaward_default`.

Safe to repeat. The pools become what pools.json says; a connection that is there already stays as it is.
All is done by Airflow's own commands, in one process, since each start of Airflow takes seconds.

Addresses and folders are the environment's (docker/airflow.env). A secret file `spark-connect-token`, where
there is one, becomes the connection's password: the bearer token of a Connect server behind TLS.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

POOLS = Path(__file__).with_name("pools.json")


def connections(environment: Mapping[str, str]) -> dict[str, Any]:
    """The connections by their ids, as `airflow connections import` reads them."""
    connection: dict[str, Any] = {
        "conn_type": "deltaward",
        "description": "Deltaward on this deployment's Spark",
        "extra": {
            "runner": "spark_connect",
            "connect_url": environment["DELTAWARD_CONNECT_URL"],
            "master": environment["DELTAWARD_SPARK_MASTER"],
            "work_dir": environment["DELTAWARD_WORK_DIR"],
            "allowed_roots": [environment[f"DELTAWARD_{name}_ROOT"] for name in ("TABLES", "LANDING")],
        },
    }
    token = Path(environment["DELTAWARD_SECRETS"], "spark-connect-token")
    if token.is_file() and (password := token.read_text().strip()):
        connection["password"] = password
    return {"deltaward_default": connection}


def main() -> None:
    """Run the commands one after the other; the first that fails ends the process with its code."""
    from airflow.cli.cli_parser import get_parser

    parser = get_parser()
    with tempfile.TemporaryDirectory(dir=os.environ["DELTAWARD_RUNTIME"]) as folder:
        known = Path(folder, "connections.json")
        known.touch(mode=0o600)
        known.write_text(json.dumps(connections(os.environ)))
        for command in (
            ["db", "migrate"],
            ["pools", "import", str(POOLS)],
            ["connections", "import", str(known)],
        ):
            arguments = parser.parse_args(command)
            arguments.func(arguments)


if __name__ == "__main__":
    main()
