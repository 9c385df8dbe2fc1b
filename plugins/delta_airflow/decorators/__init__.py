"""TaskFlow decorators over Delta tables."""
