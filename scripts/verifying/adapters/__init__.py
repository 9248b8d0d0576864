"""The frameworks' own suites, each run in an environment of its own; see `verify_adapters`.

A suite is a script that prints a line ``PASSED FAILED`` and then each failure.
"""
