"""How the code reads: the load of each function on its reader, and the caps on that."""
