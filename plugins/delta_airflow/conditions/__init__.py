"""What sensors and triggers wait for: conditions on one table, each opened once and looked at again."""
