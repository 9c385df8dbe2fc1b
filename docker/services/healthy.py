"""Ends with 0 when one service of the deployment works: the health check of the images and of compose.yaml.

    python healthy.py [SERVICE]

Without a name it is the service that the entry script has started here; a container that runs something
else is as healthy as its process. Airflow's scheduler, DAG processor and triggerer are asked for at the API
server, which knows their heartbeats: that costs a request instead of a start of Airflow.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 5.0

_HEARTBEATS = {
    "airflow-scheduler": "scheduler",
    "airflow-dag-processor": "dag_processor",
    "airflow-triggerer": "triggerer",
}

# A proxy named in the environment has no business between two services.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def problem(service: str, environment: Mapping[str, str]) -> str | None:
    """What is wrong with a service; None when it works."""
    try:
        if service == "airflow-api-server":
            health = _airflow(environment)
            return None if health["metadatabase"]["status"] == "healthy" else f"{health['metadatabase']}"
        if service in _HEARTBEATS:
            beat = _airflow(environment)[_HEARTBEATS[service]]
            return None if beat["status"] == "healthy" else f"{beat}"
        if service == "spark-master":
            host, port = environment["SPARK_MASTER_HOST"], environment["SPARK_MASTER_WEBUI_PORT"]
            status = _json(f"http://{host}:{port}/json/")["status"]
            return None if status == "ALIVE" else f"its status is {status}"
        if service == "spark-worker":
            host = environment.get("DELTAWARD_SPARK_HOST") or socket.gethostname()
            # It answers before the master knows it; nothing can run on it till then.
            master = _json(f"http://{host}:{environment['SPARK_WORKER_WEBUI_PORT']}/json/")["masterurl"]
            return None if master else "it has not registered at its master"
        if service == "spark-connect":
            host = environment.get("DELTAWARD_SPARK_HOST") or socket.gethostname()
            address = (host, int(environment["DELTAWARD_CONNECT_PORT"]))
            socket.create_connection(address, timeout=TIMEOUT_SECONDS).close()
            return None
    except (OSError, ValueError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return f"there is no service {service!r}"


def _airflow(environment: Mapping[str, str]) -> dict[str, Any]:
    parts = urlsplit(environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"])
    return _json(f"{parts.scheme}://{parts.netloc}/api/v2/monitor/health")


def _json(url: str) -> dict[str, Any]:
    with _OPENER.open(url, timeout=TIMEOUT_SECONDS) as answer:
        return json.load(answer)


def main(arguments: list[str]) -> int:
    """The exit code; the problem is printed."""
    if arguments:
        service = arguments[0]
    else:
        started = Path(os.environ.get("DELTAWARD_RUNTIME", "/run/deltaward"), "service")
        if not started.is_file():
            return 0
        service = started.read_text().strip()
    found = problem(service, os.environ)
    if found:
        print(f"{service}: {found}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
