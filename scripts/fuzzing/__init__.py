"""A seeded fuzzer of the readers: copies of small stores, each with a few mutations."""
