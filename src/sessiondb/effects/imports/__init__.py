"""The effects of an import, of foreign sessions and of sessiondb's own logs."""
