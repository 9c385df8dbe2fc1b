"""What a driver host is asked, checked: who asks, for which program, and whether it is still wanted."""

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

from delta_core.errors import ConfigurationError

DRIVER = ("-m", "spark_jobs.main")
"""The only program that drivers are forked for."""

REQUEST_BYTES = 4 << 20
OUTPUTS = 2
"""File descriptors that come with a request: standard output and error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRequest:
    """What a driver is to be: checked, so that forking cannot fail for what it says."""

    command: list[str]
    environment: dict[str, str]
    directory: str
    umask: int


def require_fitting(request: DriverRequest, *, code: int) -> None:
    """A driver that would not be the one the command names must not be forked from this process.

    Args:
        code: what `code_on_disk` said when this process loaded the code.

    Raises:
        ConfigurationError: another interpreter, program, search path or state of the code.
    """
    if request.command[0] != sys.executable or tuple(request.command[1:3]) != DRIVER:
        raise ConfigurationError("the command is not the driver of this interpreter")
    if _search_path(request.environment) != _search_path(os.environ):
        raise ConfigurationError("the driver's PYTHONPATH is not the host's")
    if code_on_disk() != code:
        raise ConfigurationError("the code changed since the host has loaded it: restart the host")


def code_on_disk(packages: Sequence[str] = ("delta_core", "spark_jobs")) -> int:
    """A number that changes when a source file of the packages does; of use within one process."""
    found = []
    for package in packages:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for parent, _, files in os.walk(folder):
                for name in files:
                    if name.endswith(".py"):
                        path = os.path.join(parent, name)
                        try:
                            status = os.lstat(path)
                            found.append((path, status.st_mtime_ns, status.st_size))
                        except OSError:  # gone since it was listed
                            found.append((path, -1, -1))
    return hash(tuple(sorted(found)))


def _search_path(environment: Mapping[str, str]) -> list[str]:
    """PYTHONPATH as the runner passes it on: absolute, with this package's own folder at the end."""
    entries = environment.get("PYTHONPATH", "").split(os.pathsep)
    paths = [os.path.abspath(entry) for entry in entries if entry]
    own = str(Path(__file__).resolve().parent.parent)
    return paths if own in paths else [*paths, own]


def parse_request(text: bytes, *, descriptors: int) -> DriverRequest:
    """Raises ConfigurationError for what is not a whole request."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError("the request is not JSON") from error
    if not isinstance(given, dict) or descriptors != OUTPUTS:
        raise ConfigurationError("the request is not a JSON object with two file descriptors")
    command, environment = given.get("command"), given.get("environment")
    directory, umask = given.get("directory"), given.get("umask")
    if (
        not (isinstance(command, list) and command and all(_is_string(word) for word in command))
        or not (isinstance(environment, dict) and all(_is_string(value) for value in environment.values()))
        or not all(name and "=" not in name and _is_string(name) for name in environment)
        or not (_is_string(directory) and os.path.isdir(directory))
        or not (isinstance(umask, int) and 0 <= umask <= 0o777)
    ):
        raise ConfigurationError("the request lacks a command, an environment, a directory or a umask")
    return DriverRequest(command=command, environment=environment, directory=directory, umask=umask)


def _is_string(value: object) -> bool:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def listen(path: Path) -> socket.socket:
    """A socket that only this user may use; one that is there and answers nobody is replaced.

    Raises:
        ConfigurationError: it cannot be made, or another host answers there.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise ConfigurationError(f"Another driver host answers at {path}", fix="Stop it first")
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise ConfigurationError(f"{path} is there and is no socket", fix="Name another path")
            path.unlink()
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"The driver host cannot listen at {path}",
            cause=str(error),
            fix="Name a path in a directory that this user may write, shorter than 100 characters",
        ) from error
    except BaseException:
        listener.close()
        raise
    return listener


def require_same_user(connection: socket.socket) -> None:
    """Raises ConfigurationError when the other end is another user's. Where the system tells."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return  # the socket's mode alone keeps others out
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, size))
    if user != os.geteuid():
        raise ConfigurationError("the request comes from another user")


def require_waiting(connection: socket.socket) -> None:
    """Raises ConfigurationError when whoever asked has gone: it may have started the driver itself."""
    try:
        gone = connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return
    except OSError:
        gone = True
    if gone:
        raise ConfigurationError("nobody waits for the driver any more")
