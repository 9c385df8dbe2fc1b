"""The environment of the demonstration's processes, without the settings of the user's own Airflow."""

from __future__ import annotations

import json
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

from demo.layout import REPOSITORY, Layout, read_json, write_json
from demo.object_store import s3_access
from demo.processes import LOOPBACK

USER = "admin"
CONNECTION_ID = "deltaward_default"

_NOT_PASSED_ON = (
    "AIRFLOW",
    "AWS_",
    "PYSPARK_",
    "SPARK_",
    "DELTAWARD_CONN",
    "DELTAWARD_LANDING",
    "DELTAWARD_MAINTENANCE",
    "DELTAWARD_ON_FAILURE",
    "DELTAWARD_POLICIES",
    "DELTAWARD_POOL",
    "DELTAWARD_RETR",
    "DELTAWARD_TABLES",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The address and the credentials of a demonstration's Airflow."""

    url: str
    user: str
    password: str


def write_login(layout: Layout, *, port: int) -> Login:
    """Create a password, and write it to Airflow's password file and to the login file."""
    login = Login(url=f"http://{LOOPBACK}:{port}", user=USER, password=secrets.token_urlsafe(12))
    write_json(_passwords_file(layout), {USER: login.password})
    write_json(layout.login, {"url": login.url, "user": login.user, "password": login.password})
    return login


def read_login(layout: Layout) -> Login:
    return Login(**read_json(layout.login))


def base_environment(
    layout: Layout,
    *,
    connect_url: str | None,
    dags: Path | None = None,
    driver_python: Path | None = None,
) -> dict[str, str]:
    """The environment for both ways of running the DAGs.

    Args:
        connect_url: the URL of the Spark Connect server.
        dags: a DAG folder that replaces the repository's.
        driver_python: an interpreter for the drivers that replaces the current one.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_NOT_PASSED_ON) and name.upper() != "NO_PROXY"
    }
    no_plugins = layout.home / "no-plugins"
    no_plugins.mkdir(exist_ok=True)
    extra = {"runner": "spark_connect", "connect_url": connect_url, "work_dir": str(layout.runs)}
    if driver_python is not None:
        extra["python"] = str(driver_python)
    path = [str(REPOSITORY), str(REPOSITORY / "plugins"), *filter(None, [inherited.get("PYTHONPATH")])]
    return {
        **inherited,
        # Airflow starts programs by name, and must find those of this environment.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", os.defpath)]),
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONUNBUFFERED": "1",
        # All requests stay on this machine and must not use a proxy from the environment.
        "NO_PROXY": f"{LOOPBACK},localhost",
        "no_proxy": f"{LOOPBACK},localhost",
        "AIRFLOW_HOME": str(layout.airflow_home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags or REPOSITORY / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(no_plugins),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # The folder contains DAGs that are not part of the demonstration, and some have a schedule.
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        # SQLite allows one writer at a time. On a busy machine the others must wait longer than 5 s.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{layout.airflow_home / 'airflow.db'}?timeout=60",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(layout.logs / "tasks"),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        f"AIRFLOW_CONN_{CONNECTION_ID.upper()}": json.dumps({"conn_type": "deltaward", "extra": extra}),
        # No other process writes to the tables, so a failed attempt is repeated at once.
        "DELTAWARD_RETRY_SECONDS": "1",
        "DELTAWARD_TABLES_ROOT": layout.tables_uri,
        **(s3_access(layout) if layout.store == "s3" else {}),
        "DELTAWARD_LANDING_ROOT": str(layout.landing),
    }


def service_settings(layout: Layout, *, port: int) -> dict[str, str]:
    """The additional settings of Airflow's services: loopback only, one user with a password."""
    base_url = f"http://{LOOPBACK}:{port}"
    return {
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": base_url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
        "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(32),
        "AIRFLOW__CORE__AUTH_MANAGER": (
            "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
        ),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_passwords_file(layout)),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{base_url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "3",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "60",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
        "AIRFLOW__SCHEDULER__MIN_FILE_PROCESS_INTERVAL": "60",
    }


def _passwords_file(layout: Layout) -> Path:
    return layout.airflow_home / "passwords.json"
