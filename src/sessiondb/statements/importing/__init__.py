"""The statements of these rooms."""
