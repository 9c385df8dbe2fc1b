"""Requests to a driver host, and their checks: the client's user, the program, and that the client waits."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from delta_core.errors import ConfigurationError

DRIVER = ("-m", "spark_jobs.main")
"""The only program that the host runs in its forks."""

REQUEST_BYTES = 4 << 20
OUTPUTS = 2
"""The number of file descriptors in a request: standard output and error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRequest:
    """A validated request for a driver, so that the fork cannot fail because of its content."""

    command: list[str]
    environment: dict[str, str]
    directory: str
    umask: int


def require_fitting(request: DriverRequest, *, code: int) -> None:
    """Refuse a request whose driver would differ from one that the command starts.

    Args:
        code: the result of `code_on_disk` when this process loaded the code.

    Raises:
        ConfigurationError: the interpreter, the program, the search path or the code differs.
    """
    if request.command[0] != sys.executable or tuple(request.command[1:3]) != DRIVER:
        raise ConfigurationError("The command is not the driver of this interpreter.")
    if _search_path(request.environment) != _search_path(os.environ):
        raise ConfigurationError("The driver's PYTHONPATH differs from the host's.")
    if code_on_disk() != code:
        raise ConfigurationError("The code changed after the host loaded it.", fix="Restart the host.")


def code_on_disk(packages: Sequence[str] = ("delta_core", "spark_jobs")) -> int:
    """A hash of the packages' source files. It is comparable only within one process."""
    states = []
    for package in packages:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for parent, _, files in os.walk(folder):
                for name in files:
                    if name.endswith(".py"):
                        path = os.path.join(parent, name)
                        try:
                            status = os.lstat(path)
                            states.append((path, status.st_mtime_ns, status.st_size))
                        except OSError:  # deleted after it was listed
                            states.append((path, -1, -1))
    return hash(tuple(sorted(states)))


def _search_path(environment: Mapping[str, str]) -> list[str]:
    """PYTHONPATH as the runner passes it: absolute, with this package's folder at the end."""
    entries = environment.get("PYTHONPATH", "").split(os.pathsep)
    paths = [os.path.abspath(entry) for entry in entries if entry]
    package_root = str(Path(__file__).resolve().parent.parent)
    return paths if package_root in paths else [*paths, package_root]


def parse_request(text: bytes, *, descriptors: int) -> DriverRequest:
    """Parse a request. Raises ConfigurationError when the request is not complete and valid."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError("The request is not JSON.") from error
    if not isinstance(document, dict) or descriptors != OUTPUTS:
        raise ConfigurationError("The request is not a JSON object with two file descriptors.")
    command, environment = document.get("command"), document.get("environment")
    directory, umask = document.get("directory"), document.get("umask")
    if (
        not (isinstance(command, list) and command and all(_is_string(word) for word in command))
        or not (isinstance(environment, dict) and all(_is_string(value) for value in environment.values()))
        or not all(name and "=" not in name and _is_string(name) for name in environment)
        or not (_is_string(directory) and os.path.isdir(directory))
        or not (isinstance(umask, int) and 0 <= umask <= 0o777)
    ):
        raise ConfigurationError("The request lacks a valid command, environment, directory or umask.")
    return DriverRequest(command=command, environment=environment, directory=directory, umask=umask)


def _is_string(value: object) -> TypeGuard[str]:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def listen(path: Path) -> socket.socket:
    """Create a socket that only this user may use. An existing socket that does not answer is replaced.

    Raises:
        ConfigurationError: the socket cannot be created, or another host answers at the path.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise ConfigurationError(
                    f"Another driver host answers at {path}.", fix="Stop the other host first."
                )
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise ConfigurationError(
                    f"The file {path} exists and is not a socket.", fix="Name another path."
                )
            path.unlink()
        previous_umask = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(previous_umask)
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"The driver host cannot listen at {path}.",
            cause=f"{error}.",
            fix="Name a path that is shorter than 100 characters, in a directory that this user may "
            "write to.",
        ) from error
    except BaseException:
        listener.close()
        raise
    return listener


def require_same_user(connection: socket.socket) -> None:
    """Raise ConfigurationError when the client is another user. Checked only on systems that report it."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return  # only the socket's mode keeps other users out
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, size))
    if user != os.geteuid():
        raise ConfigurationError("The request comes from another user.")


def require_waiting(connection: socket.socket) -> None:
    """Raise ConfigurationError when the client has disconnected: it may have started the driver itself."""
    try:
        disconnected = connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return
    except OSError:
        disconnected = True
    if disconnected:
        raise ConfigurationError("The client no longer waits for the driver.")
