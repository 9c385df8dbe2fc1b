"""Whether a store keeps what `LogStore` promises: the checks, and a run of them all against a user's own."""
