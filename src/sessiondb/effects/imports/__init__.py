"""The effects of an import: one way in for foreign sessions and for logs of sessiondb's."""
