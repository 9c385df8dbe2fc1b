"""A registry file: names of tables and their URIs in a JSON file, where no catalog can keep them.

The file is `{"tables": {"db.orders": {"uri": "/data/orders"}}}`. It is written by a rename, so a reader
always sees a whole file. Writers on one machine wait for each other.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from delta_core.errors import ConfigurationError, DeltaError
from spark_jobs.names.address import DELTAWARD, PROVIDERS, TableAddress
from spark_jobs.names.identifiers import TableName

SETTING = "spark.deltaward.tables"
"""The setting of a session with the path of the registry file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A registry file. Names are compared without case, as in Spark's catalog."""

    path: Path

    def tables(self) -> dict[str, TableAddress]:
        """The tables by name, in lower case; none when the file does not exist.

        Raises:
            ConfigurationError: the file is not a registry.
        """
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._invalid(f"{error}") from error
        listed = document.get("tables") if isinstance(document, dict) else None
        if not isinstance(listed, dict):
            raise self._invalid("It has no object `tables`.")
        return {name.lower(): self._address(name, entry) for name, entry in listed.items()}

    def find(self, name: TableName) -> TableAddress | None:
        """The address of a name; None without one."""
        return self.tables().get(str(name).lower())

    def add(self, name: TableName, uri: str, *, replace: bool = False) -> bool:
        """Add a name; False when it is in use and is not to be replaced.

        Raises:
            ConfigurationError: the file is not a registry, or cannot be written.
        """
        key = str(name).lower()
        with self._locked():
            tables = self.tables()
            if key in tables and not replace:
                return False
            self._write(tables | {key: TableAddress(uri=uri, provider=DELTAWARD, name=key)})
            return True

    def remove(self, name: TableName) -> bool:
        """Remove a name; whether it was there.

        Raises:
            ConfigurationError: the file is not a registry, or cannot be written.
        """
        key = str(name).lower()
        with self._locked():
            tables = self.tables()
            if key not in tables:
                return False
            self._write({other: address for other, address in tables.items() if other != key})
            return True

    def _address(self, name: str, entry: object) -> TableAddress:
        uri = entry.get("uri") if isinstance(entry, dict) else None
        provider = entry.get("provider", DELTAWARD) if isinstance(entry, dict) else None
        if not isinstance(uri, str) or provider not in PROVIDERS:
            raise self._invalid(f"The entry {name!r} has no `uri`, or an unknown `provider`.")
        return TableAddress(uri=uri, provider=provider, name=name.lower())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            handle = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR, 0o666)
        except OSError as error:
            raise self._invalid(f"Its directory cannot be written: {error}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _write(self, tables: Mapping[str, TableAddress]) -> None:
        document = {
            "tables": {
                name: {"uri": address.uri, "provider": address.provider}
                for name, address in sorted(tables.items())
            }
        }
        try:
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=self.path.parent, prefix=self.path.name, delete=False
            ) as scratch:
                json.dump(document, scratch, indent=2)
                scratch.flush()
                os.fsync(scratch.fileno())
            os.replace(scratch.name, self.path)
        except OSError as error:
            raise self._invalid(f"It cannot be written: {error}") from error

    def _invalid(self, cause: str) -> DeltaError:
        return ConfigurationError(
            f"{str(self.path)!r} cannot be used as a registry of tables.",
            cause=cause,
            fix='Pass the path of a file such as {"tables": {"db.orders": {"uri": "/data/orders"}}}, or of '
            "a file that does not exist yet.",
        )
