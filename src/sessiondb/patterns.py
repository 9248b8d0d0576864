"""Regular expressions that are compiled when they are first used.

To compile one takes as long as to load a small module, and a command uses few of those
in the modules that it loads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:

    def late_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """Return the pattern of *text*."""

else:

    class late_pattern:  # noqa: N801  it is called like `re.compile`
        """The pattern of *text*; its methods are looked up once."""

        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._text, self._flags = text, flags

        def __getattr__(self, name: str) -> Any:
            member = getattr(re.compile(self._text, self._flags), name)
            setattr(self, name, member)
            return member
