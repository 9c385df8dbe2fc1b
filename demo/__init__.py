"""The demonstration: real tables are loaded, maintained, rolled back and checked, on this machine only."""
