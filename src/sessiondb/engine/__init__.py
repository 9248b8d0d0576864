"""The interface of database engines (the seam), and SQLite, which implements it."""
