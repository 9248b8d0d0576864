"""Our exports given to the real OpenCode; see `scripts/verify-opencode`."""
