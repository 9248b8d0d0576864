"""The seam for engines, and SQLite behind it."""
