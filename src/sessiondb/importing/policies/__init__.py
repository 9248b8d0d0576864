"""The rules in which sources differ: foreign ones, our own logs, what returns."""
