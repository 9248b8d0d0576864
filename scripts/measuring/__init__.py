"""The readability of the code: the load of each function on its reader, and its caps."""
