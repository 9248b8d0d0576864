"""sessiondb beside the stores that people use: `scripts/bench peers`.

`catalog` says which stores, `environments` installs them, `driven` starts their
processes, `phases` lets them take turns, `starts` times new processes, and `report`
makes the tables. What runs in the environment of a store is in `benchmarks.peers`.
"""
