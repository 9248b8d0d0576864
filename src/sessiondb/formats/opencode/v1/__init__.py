"""OpenCode 0.5 to 1.x: JSON trees, SQLite, and the JSON of ``opencode export``."""
