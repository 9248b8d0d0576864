"""The effects of an import: the rows of a session, from its opening to its close."""
