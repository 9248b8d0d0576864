"""The three scopes of ADK's state, and how they are stored.

The state of a session is in its metadata; that of an app and of a user are values under
their keys. What begins with ``temp:`` is never stored. A state is stored as JSON; one
with NaN, which JSON does not have, as a text that Python's decoder reads.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from google.adk.sessions import State
from pydantic_core import PydanticSerializationError, to_jsonable_python

from sessiondb.adapters.adk.keys import SOURCE

#: The namespaces of the values: keys are the beginning of the scopes of an app, and
#: the scope of a user.
OF_APPS, OF_USERS = (SOURCE, "app"), (SOURCE, "user")

_log = logging.getLogger("sessiondb.adapters.adk")


class StateDelta(NamedTuple):
    """The changes in each scope, without prefixes."""

    app: dict[str, Any]
    user: dict[str, Any]
    session: dict[str, Any]


def delta_by_scope(delta: Mapping[str, Any] | None) -> StateDelta:
    """Return a change of ADK's state by its scopes, as JSON values."""
    scopes = StateDelta({}, {}, {})
    for key, value in jsonable(delta).items() if delta else ():
        if key.startswith(State.APP_PREFIX):
            scopes.app[key.removeprefix(State.APP_PREFIX)] = value
        elif key.startswith(State.USER_PREFIX):
            scopes.user[key.removeprefix(State.USER_PREFIX)] = value
        elif not key.startswith(State.TEMP_PREFIX):
            scopes.session[key] = value
    return scopes


def jsonable(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state as JSON values; what has no such form is its ``repr``."""
    try:
        values: dict[str, Any] = to_jsonable_python(dict(state))
    except PydanticSerializationError:
        _log.warning("a value of the state has no JSON form, and is stored as a text")
        values = to_jsonable_python(dict(state), serialize_unknown=True)
    return values


def shared_state(app: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a session has of the states of its app and user, with prefixes."""
    return {
        **{State.APP_PREFIX + key: value for key, value in app.items()},
        **{State.USER_PREFIX + key: value for key, value in user.items()},
    }


def stored_state(state: dict[str, Any]) -> dict[str, Any] | str:
    """Return a state as it is stored."""
    try:
        json.dumps(state, allow_nan=False)
    except ValueError:
        return json.dumps(state)
    return state


def decoded_state(value: str | None) -> dict[str, Any]:
    """Return the state of the column of a value; {} for none."""
    return {} if value is None else state_of(json.loads(value))


def state_of(stored: Any) -> dict[str, Any]:
    """Return the state that was stored; {} for none."""
    if isinstance(stored, str):
        stored = json.loads(stored)
    return stored or {}


def updated_state(delta: Mapping[str, Any], stored: Any) -> dict[str, Any] | str:
    """Return a stored state with *delta* in it, as it is stored."""
    return stored_state({**state_of(stored), **delta})
