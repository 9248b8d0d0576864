"""Values that are known: None means that one is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def without_none(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return *record* without the keys whose value is None."""
    return {key: value for key, value in record.items() if value is not None}
