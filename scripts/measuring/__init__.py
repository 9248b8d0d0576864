"""How the code reads: what a function asks of its reader, and the caps on that."""
