"""Parts of ``scripts/compare-usage``."""
