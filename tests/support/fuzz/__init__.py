"""Reading damaged and hostile tables: a corpus, mutators, a slow reader to compare with, and a runner."""
