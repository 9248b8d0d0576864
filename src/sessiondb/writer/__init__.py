"""How units reach the file: the writer, its queue, its thread, and the callbacks after commit."""
