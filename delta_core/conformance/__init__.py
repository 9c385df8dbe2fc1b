"""Checks whether a store keeps the contract of `LogStore`, and a run of all checks on a user's store."""
