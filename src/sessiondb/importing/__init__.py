"""The import of sessions: from what a reader yields to the rows of the database.

`importer` takes one session after the other through the `gate`, `lookup` finds what is
known of it, and `units` gathers the effects that write its `rows`. The `policies` are
the rules in which sources differ. What programs keep `beside` their sessions is
imported after them.
"""
