"""SQLite: connections, pragmas, error translation, opening and migrating a file."""
