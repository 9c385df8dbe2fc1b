"""A table at one version, and its history."""
