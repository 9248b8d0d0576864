"""The only place that knows a dialect: connections, pragmas, error translation, migrations."""
