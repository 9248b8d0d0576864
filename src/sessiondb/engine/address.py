"""The address of a database on a server."""

from __future__ import annotations

from sessiondb.dataclass import dataclass, field
from sessiondb.patterns import late_pattern

#: The passwords of a URL: behind the name of the user, and among the options.
_OF_USER = late_pattern(r"(://[^/?:@]*:)[^/?]*@")
_OPTION = late_pattern(r"([?&](?:ssl)?password=)[^&]*")


@dataclass(frozen=True, slots=True)
class Address:
    """The URL of a database; wherever it is shown, it is without passwords."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        return _OPTION.sub(r"\1***", _OF_USER.sub(r"\1***@", self.url))
