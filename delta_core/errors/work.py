"""Errors of maintenance, jobs and leases."""

from __future__ import annotations

from delta_core.errors.base import DeltaError


class MaintenanceError(DeltaError):
    """A maintenance operation cannot run as requested."""

    code = "MAINTENANCE_ERROR"


class RetentionTooShortError(MaintenanceError):
    """The requested retention could delete files that readers or writers still need."""

    code = "RETENTION_TOO_SHORT"


class RestoreError(MaintenanceError):
    """The table cannot be restored to the version."""

    code = "RESTORE_REFUSED"


class RestorePlanOutdatedError(RestoreError):
    """The table has commits that are newer than the restore's plan, which may have been approved already."""

    code = "RESTORE_PLAN_OUTDATED"
    conflict = True


class CloneError(MaintenanceError):
    """A table cannot be cloned to the requested location."""

    code = "CLONE_REFUSED"


class CloneDivergedError(CloneError):
    """The target has a version that the source does not have: the histories have diverged."""

    code = "CLONE_DIVERGED"
    conflict = True


class CloneOutdatedError(CloneError):
    """The source's log was cleaned up while it was copied."""

    code = "CLONE_OUTDATED"
    retryable = True
    conflict = True


class VerificationError(MaintenanceError):
    """The result of an operation does not match its plan."""

    code = "VERIFICATION_FAILED"


class JobError(DeltaError):
    """A job cannot run or did not succeed."""

    code = "JOB_ERROR"


class InvalidJobSpecError(JobError):
    """The job specification is malformed or of a newer format."""

    code = "INVALID_JOB_SPEC"


class JobFailedError(JobError):
    """The job ran and failed. Its result contains the error."""

    code = "JOB_FAILED"


class QualitySuiteError(JobError):
    """A suite of expectations is not valid. The message names the expectation."""

    code = "INVALID_QUALITY_SUITE"


class QualityGateError(JobError):
    """The data does not meet its suite of expectations. None of it was published."""

    code = "QUALITY_GATE_FAILED"


class LeaseError(DeltaError):
    """A lease or a reader's pin cannot be acquired or kept."""

    code = "LEASE_ERROR"


class LeaseHeldError(LeaseError):
    """Another holder has the lease. The message names the holder and the time when the lease ends."""

    code = "LEASE_HELD"
    retryable = True


class LeaseLostError(LeaseError):
    """The lease ended or was taken over while its holder worked. Nothing was committed after that."""

    code = "LEASE_LOST"


class LeaseFileError(LeaseError):
    """A lease file or pin file is damaged or has a newer format. The message names the file."""

    code = "INVALID_LEASE_FILE"
