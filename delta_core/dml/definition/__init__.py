"""Changes of a table's definition that leave its data alone: one file for each kind."""
