"""Between a reader and the store: every value is checked here before it is queued."""
