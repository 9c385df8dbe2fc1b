"""The demonstration: real tables loaded, maintained, rolled back and checked, on this machine alone."""
