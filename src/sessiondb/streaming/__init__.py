"""Streams: answers that are written while they arrive, each under a lease."""
