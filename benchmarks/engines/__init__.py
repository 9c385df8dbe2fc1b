"""One module per contestant; a function per operation, named alike."""
