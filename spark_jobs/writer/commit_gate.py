"""The gate between the staged files of a write and its commit: it decides which rows are committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_core.schema.types import StructType
    from delta_core.transaction import CommitProperties
    from spark_jobs.expressions.checks import Check
    from spark_jobs.writer.staged_files import StagedFiles


class RowCollector(Protocol):
    """Collects the rows that violate a check, which would otherwise fail the write."""

    def split(self, frame: DataFrame, checks: Sequence[Check]) -> DataFrame:
        """The rows to stage: those that pass every check. The collector keeps the other rows."""

    def staged(self, rows: int) -> None:
        """Record the number of rows in the staged files."""

    def release(self) -> None:
        """Release what the collector holds on the cluster. Called once, whether or not the write succeeds."""


class CommitGate(Protocol):
    """The gate of one write.

    The write calls `prepare`, stages the rows, and calls `audit` and, directly before the commit,
    `require_undisturbed` and `with_outcome`. When it fails after staging, it deletes the files and calls
    `retract`, unless the commit's state is unknown.
    """

    @property
    def rejected(self) -> RowCollector | None:
        """The collector of rows that violate a check; None when such a row fails the write."""

    def prepare(self, schema: StructType) -> None:
        """Check that the gate can judge rows of this schema. Raises DeltaError, and writes nothing."""

    def audit(self, staged: StagedFiles) -> StagedFiles | None:
        """The files to commit; None when another try has already committed the rows.

        Raises:
            DeltaError: the rows must not be committed, or could not be judged.
        """

    def require_undisturbed(self) -> None:
        """Raise ConcurrentTransactionError when another try has changed what this one relies on."""

    def with_outcome(self, properties: CommitProperties) -> CommitProperties:
        """The commit's properties with the gate's outcome."""

    def retract(self) -> None:
        """Undo what `audit` has stored elsewhere, because the rows were not committed. Raises nothing."""


class _OpenGate:
    @property
    def rejected(self) -> RowCollector | None:
        return None

    def prepare(self, schema: StructType) -> None:
        pass

    def audit(self, staged: StagedFiles) -> StagedFiles | None:
        return staged

    def require_undisturbed(self) -> None:
        pass

    def with_outcome(self, properties: CommitProperties) -> CommitProperties:
        return properties

    def retract(self) -> None:
        pass


OPEN_GATE: Final[CommitGate] = _OpenGate()
"""The gate of a write that commits every row it has staged."""
