"""Which table features and properties exist and what this library does with each."""
