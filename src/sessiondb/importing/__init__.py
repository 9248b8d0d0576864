"""The import of sessions: from what a reader yields to the rows of the database.

`importer` passes over what is as it was, by the files that are known (`known_files`)
and the digests of sessions (`unchanged`). `sessions` takes any other session through
the `gate`, `lookup` finds what is known of it, and `units` gathers the effects that
write its `rows`. The `policies` are the rules in which sources differ. Records that
programs keep `beside` their sessions are imported after them.
"""
