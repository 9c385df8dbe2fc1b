"""ALTER TABLE ... DROP FEATURE: remove every use of a feature, then the feature from the protocol."""

from delta_core.maintenance.feature_drop.apply import drop_feature

__all__ = ["drop_feature"]
