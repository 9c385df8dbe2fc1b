"""Remote stores that Spark's executors reach with credentials of their environment."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from delta_core.storage.open import open_store
from delta_core.storage.option_names import is_secret
from tests.support.emulators.installation import require
from tests.support.emulators.places import PLACES, Place

STORES = ("s3", "gcs", "azure", "hdfs")
_VARIABLES = {"service_account_key": "GOOGLE_SERVICE_ACCOUNT_KEY", "account_key": "AZURE_STORAGE_ACCOUNT_KEY"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlaces:
    """Servers, by the name of the kind of store, and the variables that hold their credentials."""

    places: Mapping[str, Place]
    environment: Mapping[str, str]


def secrets_of(place: Place) -> dict[str, str]:
    """The options of a place that are credentials."""
    return {name: value for name, value in place.options.items() if is_secret(name)}


@contextmanager
def spark_places(folder: Path, names: Sequence[str]) -> Iterator[SparkPlaces]:
    """A server of each kind. Skips the test where one is not installed."""
    with ExitStack() as stack:
        places = {}
        for name in names:
            opener, servers = PLACES[name]
            for server in servers:
                require(server)
            places[name] = stack.enter_context(opener(folder / name))
        environment = {
            _VARIABLES.get(name, name): value
            for place in places.values()
            for name, value in secrets_of(place).items()
        }
        if "gcs" in places:
            # Some callers have the address in the key alone.
            key = json.loads(environment["GOOGLE_SERVICE_ACCOUNT_KEY"])
            address = {"gcs_base_url": places["gcs"].endpoint}
            environment["GOOGLE_SERVICE_ACCOUNT_KEY"] = json.dumps(key | address)
        yield SparkPlaces(places=places, environment=environment)


def copied(place: Place, uri: str, folder: Path) -> Path:
    """A table as it is now in a local directory, where any library reads it."""
    target = folder / f"copy-{uuid.uuid4()}"
    store = open_store(uri, storage_options=dict(place.options))
    for info in store.walk():
        path = target / info.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.read(info.path))
    return target
