"""Streams: an answer that is written while it arrives, and the lease that protects it."""
