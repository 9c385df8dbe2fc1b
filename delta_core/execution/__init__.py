"""Running task maps: executors, limits and progress."""
