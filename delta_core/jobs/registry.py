"""The registry of job kinds, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from delta_core.errors import ConfigurationError, InvalidJobSpecError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.json_schema import JsonSchema, check_params

_LOGGER = logging.getLogger(__name__)

ENTRY_POINT_GROUP: Final = "deltaward.jobs"
"""The entry-point group of other distributions' kinds. Each entry point is a function
`register(registry)`."""

JobHandler = Callable[[JobSpec, JobContext], JobResult]
"""The function that runs one kind. It raises DeltaError; `run_job` turns the error into a result."""

ALLOWED_ROOT_URIS: Final[JsonSchema] = {
    "type": ["array", "null"],
    "items": {"type": "string", "minLength": 1},
    "description": "URIs of the folders that absolute paths in the log may point into, for a shallow clone. "
    "Files elsewhere are skipped.",
}
"""The schema of the parameter of that name; see `JobContext.allowed_roots`."""

_NO_PARAMS: Final[JsonSchema] = {"type": "object", "additionalProperties": False, "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """One kind of job.

    Attributes:
        run: the handler.
        help: one sentence for the help.
        params_schema: JSON Schema of `JobSpec.params`.
        needs_table: False when the kind may create the table. Its context may then have no snapshot.
        commits: False when the kind never commits. Its idempotency key is then ignored.
        opens_table: False when the handler itself opens the table through `JobContext.with_table`, because it
            may not need the table. Its context then has no snapshot.
    """

    name: str
    run: JobHandler
    help: str = ""
    params_schema: Mapping[str, Any] = field(default_factory=lambda: _NO_PARAMS, hash=False)
    needs_table: bool = True
    commits: bool = True
    opens_table: bool = True

    def check_params(self, params: Mapping[str, Any]) -> None:
        """Check the parameters of a spec of this kind.

        Raises:
            InvalidJobSpecError: a parameter is missing, unknown or of a wrong type. The error names all of
                them.
        """
        check_params(self.name, params, self.params_schema)


class JobRegistry:
    """Job kinds by name. A lookup of an unknown name loads the entry points."""

    def __init__(self, *, group: str | None = ENTRY_POINT_GROUP) -> None:
        self._kinds: dict[str, JobKind] = {}
        self._failures: dict[str, str] = {}
        self._group = group
        self._loaded = group is None

    def register(self, kind: JobKind) -> None:
        """Add a job kind to the registry.

        Raises:
            ConfigurationError: the name is taken by another kind.
        """
        if self._kinds.setdefault(kind.name, kind) != kind:
            raise ConfigurationError(
                f"Two job kinds are named {kind.name!r}.", fix="Rename the kind that your package registers."
            )

    def get(self, name: str) -> JobKind:
        """The job kind with that name.

        Raises:
            InvalidJobSpecError: the kind is unknown.
        """
        if name not in self._kinds:
            self._load_entry_points()
        kind = self._kinds.get(name)
        if kind is None:
            failed = "; ".join(f"{source}: {reason}" for source, reason in self._failures.items())
            raise InvalidJobSpecError(
                f"The job kind {name!r} does not exist.",
                cause=f"These extensions did not load: {failed}." if failed else "",
                fix=f"Choose one of {', '.join(sorted(self._kinds))}, or install the package that "
                "provides it.",
            )
        return kind

    def kinds(self) -> tuple[JobKind, ...]:
        """Every kind, entry points included, sorted by name."""
        self._load_entry_points()
        return tuple(self._kinds[name] for name in sorted(self._kinds))

    def _load_entry_points(self) -> None:
        if self._loaded or self._group is None:
            return
        self._loaded = True
        for entry_point in entry_points(group=self._group):
            self._load(entry_point)

    def _load(self, entry_point: EntryPoint) -> None:
        try:
            entry_point.load()(self)
        except ConfigurationError:
            raise
        except Exception as error:  # a broken or half-installed extension must not disable the rest
            self._failures[entry_point.name] = f"{type(error).__name__}: {error}"
            _LOGGER.warning(
                "An extension did not load.", extra={"entry_point": entry_point.value, "why": str(error)}
            )
