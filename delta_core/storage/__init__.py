"""Object stores and file systems as bytes and names, without knowledge of Delta."""
