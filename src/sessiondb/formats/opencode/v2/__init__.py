"""OpenCode 2: SQLite, and the JSON of ``opencode session export``."""
