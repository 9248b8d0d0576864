"""The way of units to the file: the writer, its thread, and callbacks after commits."""
