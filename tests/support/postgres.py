"""A PostgreSQL server of one test run: Debian's programs, a system user, a folder of its own."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psycopg2

from demo.processes import LOOPBACK
from tests.support.repository import ROOT


class PostgresServer:
    """What compose.yaml's image does at its first start, for a server on a loopback port.

    The server refuses to run as root, and its user cannot enter a test's private folders: as root it gets
    one of its own below the system's temporary folder.
    """

    def __init__(self, *, port: int) -> None:
        self._port = port
        self._folder: Path | None = None
        self._programs = Path()
        self._user = ""
        self._database = ""
        self._password = ""

    def prepare(self, settings: Mapping[str, str], *, password: str) -> list[str]:
        """Make the cluster; returns the command that runs the server."""
        self._programs = Path(_run([str(ROOT / "scripts" / "postgres.sh")]).strip())
        self._folder = Path(tempfile.mkdtemp(prefix="deltaward-postgres-"))
        self._user, self._database = settings["POSTGRES_USER"], settings["POSTGRES_DB"]
        self._password = password
        secret = self._folder / "password"
        secret.write_text(password)
        user = _system_user()
        if user is not None:
            for path in (self._folder, secret):
                shutil.chown(path, user=user.pw_uid)
        arguments = [f"--pgdata={self._folder / 'data'}", f"--username={self._user}", f"--pwfile={secret}"]
        initdb = [str(self._programs / "initdb"), *arguments, *shlex.split(settings["POSTGRES_INITDB_ARGS"])]
        as_user = _change_to(user)
        _run([*as_user, *initdb], cwd=self._folder)
        secret.unlink()
        options = [f"listen_addresses={LOOPBACK}", f"port={self._port}", "unix_socket_directories="]
        server = [str(self._programs / "postgres"), "-D", str(self._folder / "data")]
        return [*as_user, *server, *(part for option in options for part in ("-c", option))]

    def ready(self) -> bool:
        """True once it takes connections; then its database is there too."""
        command = [self._programs / "pg_isready", f"--host={LOOPBACK}", f"--port={self._port}", "--quiet"]
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:
            return False
        connection = psycopg2.connect(
            host=LOOPBACK, port=self._port, user=self._user, password=self._password, dbname="postgres"
        )
        connection.autocommit = True
        try:
            with connection.cursor() as cursor:
                cursor.execute(f'CREATE DATABASE "{self._database}"')
        finally:
            connection.close()
        return True

    def remove(self) -> None:
        """Delete the cluster of a server that has ended."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _system_user() -> pwd.struct_passwd | None:
    """For root: a system user to run as; else None."""
    if os.geteuid():
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


def _change_to(user: pwd.struct_passwd | None) -> list[str]:
    """The words before a command that change its user and end it with this process, however that ends.

    Nothing else would find a server whose test was killed: it overwrites its environment with its title.
    """
    command = ["setpriv", "--pdeathsig=INT"]
    if user is not None:
        command += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return command


def _run(command: list[str], *, cwd: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
