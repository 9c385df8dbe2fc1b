"""One engine per file: each runs a JobSpec and returns its JobResult."""
