"""Programs that use one file together, and are killed, interrupted and cancelled.

Each program (`program`) writes what was acknowledged to it into a pipe, outside of the
database. After each round everything in it is compared with the file (`verdict`).
"""
