"""What the URL of a database says of a connection, as libpq names it.

    postgresql://NAME@db.example.org:5432/agents?sslmode=verify-full
    postgresql:///agents?host=/run/postgresql

Whatever it leaves out comes from libpq's environment (``PGHOST``, ``PGPASSWORD``, the
password file …). One option is ours: ``pgbouncer=true``, for a pooler in transaction
mode, which gives each transaction another session: no statement is prepared then.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sessiondb.dataclass import dataclass, field
from sessiondb.engine.address import ServerAddress
from sessiondb.errors import InvalidInputError

_POOLER = "pgbouncer"
#: The server overestimates a search, and would compile for 100 ms what takes ten.
_SETTINGS, _READ_ONLY = "-c jit=off", "-c default_transaction_read_only=on"
_YES_OR_NO = {"true": True, "false": False}
#: What a connection has if its URL says nothing else. A server that is gone is noticed
#: within two minutes, and not within two hours.
_DEFAULTS = {
    "fallback_application_name": "sessiondb",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


@dataclass(frozen=True, slots=True)
class ConnectionParameters:
    """The parameters of a connection."""

    #: In the order of their names; not shown, because the password is among them.
    pairs: tuple[tuple[str, str], ...] = field(repr=False)
    #: Whether a pooler gives each transaction another session.
    has_pooler: bool = False

    def by_name(self, **changed: Any) -> dict[str, Any]:
        """Return them by name, some of them *changed*."""
        return {**dict(self.pairs), **changed}

    def of_session(self, *, may_write: bool) -> dict[str, str]:
        """Return the settings of a session, besides `by_name`."""
        # A pooler takes no options; behind it, reads are in transactions that cannot.
        if self.has_pooler:
            return {}
        options = dict(self.pairs).get("options") or os.environ.get("PGOPTIONS", "")
        settings = _SETTINGS if may_write else f"{_SETTINGS} {_READ_ONLY}"
        return {"options": f"{options} {settings}".strip()}


@lru_cache
def parameters_of(address: ServerAddress) -> ConnectionParameters:
    """Return what a URL states; raises `InvalidInputError`."""
    place, query = _parts_of(address.url)
    options, has_pooler = [], False
    for option in query.split("&"):
        name, _, value = option.partition("=")
        if name != _POOLER:
            options.append(option)
        elif value not in _YES_OR_NO:
            raise InvalidInputError(f"{address}: {_POOLER} is true or false")
        else:
            has_pooler = _YES_OR_NO[value]

    scheme, separator, rest = place.partition("://")
    url = f"{scheme.lower()}{separator}{rest}?{'&'.join(options)}"
    try:
        options_by_name: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # Not `from` it: its message has the complete URL.
        raise InvalidInputError(
            f"{address} is not a URL of PostgreSQL, or has an option that libpq does "
            "not know",
            hint="write special characters of a password as in any URL: %40 is @",
        ) from None
    pairs = {**_DEFAULTS, **options_by_name, "client_encoding": "UTF8"}
    return ConnectionParameters(tuple(sorted(pairs.items())), has_pooler)


def _parts_of(url: str) -> tuple[str, str]:
    """Return a URL up to its options, and the options."""
    # A password may have a question mark in it, and ends at the first @.
    authority = url.partition("://")[2].partition("/")[0]
    begin = url.find("@") if "@" in authority else 0
    mark = url.find("?", begin)
    return (url, "") if mark < 0 else (url[:mark], url[mark + 1 :])
