"""What is installed under the name `pyspark`: Spark, its Connect client alone, or two versions at once."""

from __future__ import annotations

import importlib.util
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from delta_core.errors import ConfigurationError

DISTRIBUTIONS = ("pyspark", "pyspark-client")
"""Both write the folder `pyspark`."""


def check_installed(*, with_jvm: bool) -> Path:
    """See to it that this environment's pyspark can be used, without importing it.

    Args:
        with_jvm: whether a JVM is started here; the Connect client alone has none.

    Returns:
        The package's folder.

    Raises:
        ConfigurationError: pyspark is not installed, only its client is where a JVM is wanted, or the
            package and its client are there in two versions.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigurationError("pyspark is not installed.", fix="pip install 'deltaward[spark]'")
    folder = Path(spec.origin).parent
    installed = _installed(folder)
    if len(set(installed.values())) > 1:
        both = " and ".join(f"{name} {version}" for name, version in installed.items())
        client = installed["pyspark-client"]
        raise ConfigurationError(
            f"{both} are in one environment.",
            cause="Both write the folder pyspark, so its files are of two versions.",
            fix="pip uninstall -y pyspark pyspark-client; then "
            f"pip install 'pyspark=={client}' 'pyspark-client=={client}', or use constraints.txt",
        )
    if with_jvm and set(installed) == {"pyspark-client"}:
        client = installed["pyspark-client"]
        raise ConfigurationError(
            "Only Spark's Connect client is installed, which starts no Spark.",
            fix=f"pip install 'deltaward[spark]' 'pyspark=={client}', or name a Connect server",
        )
    return folder


def _installed(folder: Path) -> dict[str, str]:
    """The versions of the distributions that wrote the folder; none of Spark's own copy of it."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            one = distribution(name)
        except PackageNotFoundError:
            continue
        if Path(str(one.locate_file("pyspark"))).resolve() == folder.resolve():
            found[name] = one.version
    return found
