"""The built-in job kinds, one verb per file."""

from delta_core.jobs.kinds.auto_compact import AUTO_COMPACT_KIND
from delta_core.jobs.kinds.checkpoint import CHECKPOINT, CLEANUP_METADATA
from delta_core.jobs.kinds.clone import CLONE
from delta_core.jobs.kinds.convert import CONVERT
from delta_core.jobs.kinds.describe import DESCRIBE
from delta_core.jobs.kinds.observe import OBSERVE, PLAN
from delta_core.jobs.kinds.optimize import OPTIMIZE
from delta_core.jobs.kinds.properties import PROPERTIES
from delta_core.jobs.kinds.repair import REPAIR
from delta_core.jobs.kinds.restore import RESTORE
from delta_core.jobs.kinds.vacuum import VACUUM
from delta_core.jobs.kinds.verify import VERIFY
from delta_core.jobs.registry import JobKind

BUILTIN_KINDS: tuple[JobKind, ...] = (
    AUTO_COMPACT_KIND,
    CHECKPOINT,
    CLEANUP_METADATA,
    CLONE,
    CONVERT,
    DESCRIBE,
    OBSERVE,
    OPTIMIZE,
    PLAN,
    PROPERTIES,
    REPAIR,
    RESTORE,
    VACUUM,
    VERIFY,
)

__all__ = ["BUILTIN_KINDS"]
