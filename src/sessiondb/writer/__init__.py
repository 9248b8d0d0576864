"""How units reach the file: the writer, its thread, and callbacks after commits."""
