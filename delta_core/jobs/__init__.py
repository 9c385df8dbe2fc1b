"""Jobs: the wire contract, the registry of kinds, and running one."""
