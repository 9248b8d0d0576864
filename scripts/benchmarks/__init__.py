"""sessiondb against raw sqlite3, in one run, as ratios.

A floor does the same statements on the same tables at the same durability: what
`sessiondb` sends to SQLite is recorded once and played again by hand on a copy of
the file (`recording`). Both sides take turns and medians are compared, because on a
shared machine only ratios of one run mean anything.
"""
