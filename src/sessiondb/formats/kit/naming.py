"""Names of the files that a writer makes."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote


def file_name(name: Any) -> str:
    """Return *name* as the name of a file or folder that leads nowhere else.

    Everything but letters, digits and ``_.-~`` is written as ``%XX``; different names
    stay different.
    """
    quoted = quote(str(name).encode("utf-8", "surrogatepass"), safe="")

    # "." and ".." are the only names left that mean another folder.
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")
