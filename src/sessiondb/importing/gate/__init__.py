"""The gate of an import: a value that a source states is checked once, here."""
