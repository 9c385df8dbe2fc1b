"""ALTER TABLE ... DROP FEATURE: what needs a feature goes, then its name."""

from delta_core.maintenance.feature_drop.apply import drop_feature

__all__ = ["drop_feature"]
