"""Adapters beside the stores of their frameworks: a module for each framework.

A module has `OPERATIONS`, the names of what it measures, and `run`, which performs the
same work on the framework's own store (*kind* ``theirs``) and on the adapter (``ours``).
"""
