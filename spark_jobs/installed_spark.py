"""Check of the installed `pyspark`: Spark, only its Connect client, or a mix of two versions."""

from __future__ import annotations

import importlib.util
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from delta_core.errors import ConfigurationError

DISTRIBUTIONS = ("pyspark", "pyspark-client")
"""Both distributions install the folder `pyspark`."""


def check_installed(*, with_jvm: bool) -> Path:
    """Check that this environment's pyspark is usable, without importing it.

    Args:
        with_jvm: whether this process starts a JVM. The Connect client cannot start one.

    Returns:
        The package's folder.

    Raises:
        ConfigurationError: pyspark is not installed, only its client is installed although a JVM is needed,
            or the package and its client have different versions.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "The package pyspark is not installed.", fix="Run pip install 'deltaward[spark]'."
        )
    folder = Path(spec.origin).parent
    installed = _installed(folder)
    if len(set(installed.values())) > 1:
        both = " and ".join(f"{name} {version}" for name, version in installed.items())
        client = installed["pyspark-client"]
        raise ConfigurationError(
            f"{both} are installed in one environment.",
            cause="Both install the folder pyspark, so its files are a mix of two versions.",
            fix="Run pip uninstall -y pyspark pyspark-client; then "
            f"pip install 'pyspark=={client}' 'pyspark-client=={client}', or use constraints.txt.",
        )
    if with_jvm and set(installed) == {"pyspark-client"}:
        client = installed["pyspark-client"]
        raise ConfigurationError(
            "Only Spark's Connect client is installed, which cannot start Spark.",
            fix=f"Run pip install 'deltaward[spark]' 'pyspark=={client}', or name a Connect server.",
        )
    return folder


def _installed(folder: Path) -> dict[str, str]:
    """The version of each distribution that installed `folder`; empty for a Spark installation's copy."""
    versions = {}
    for name in DISTRIBUTIONS:
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        if Path(str(package.locate_file("pyspark"))).resolve() == folder.resolve():
            versions[name] = package.version
    return versions
