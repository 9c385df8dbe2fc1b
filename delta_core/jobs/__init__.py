"""Jobs: the wire contract, the registry of job kinds, and running a job."""
