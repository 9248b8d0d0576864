"""Identifiers: ULIDs, ascending for messages and parts, descending for sessions.

A ULID is 48 bits of Unix milliseconds and 80 random bits, written as 26
Crockford characters (https://github.com/ulid/spec). A session id is ``ses_``
and the complement of a ULID, so that plain ``ORDER BY id`` lists the newest
first. Within a process ids are strictly monotonic, a clock that steps back
included; between processes their order is that of the clocks. Ids order lists,
never history: that is what ``seq`` is for.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
from functools import lru_cache
from typing import TYPE_CHECKING

from sessiondb.clock import now_ms
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.patterns import late_pattern

if TYPE_CHECKING:
    from ulid import ULID

SESSION, MESSAGE, PART = "ses_", "msg_", "prt_"
MAX_ID_BYTES = 256

_ALL = (1 << 128) - 1
_RANDOM_BITS = 80
# Steps between ids of one millisecond are random, so that two processes that
# start from the same floor do not mint the same id. They are shorter than `_TAIL_BITS`,
# so that most of these ids begin alike.
_STEP_BITS = 36
#: The highest session id of 2200-01-01 or later: no clock that works says so.
FAR_FUTURE = "ses_7SCRB6WNZZZZZZZZZZZZZZZZZZ"

_ADJECTIVES = (
    "amber bold brave brisk calm clear coral crisp dawn deep eager early fair fleet "
    "fond fresh gentle glad golden grand green happy hazel honest humble indigo ivory "
    "jade jolly keen kind light lively lucid lunar merry mild misty noble north olive "
    "opal pale patient plain proud quick quiet rapid ready royal ruby sage silver "
    "slate solar steady still sunny swift tidy violet warm wise"
).split()
_NOUNS = (
    "acorn anchor aspen badger bay beacon birch brook canyon cedar cliff cloud comet "
    "crane creek delta dune eagle elm ember falcon fern field finch fjord forest fox "
    "garden glade grove harbor hawk heron hill island juniper lagoon lake lark maple "
    "marsh meadow moon moss oak orchid otter pebble pine pond prairie raven reef "
    "ridge river robin shore sky spruce star stone swan tide valley willow"
).split()


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
#: The two characters of each number of 10 bits.
_PAIRS = [high + low for high in _CROCKFORD for low in _CROCKFORD]
_TAIL_BITS = _RANDOM_BITS // 2
_TAIL = (1 << _TAIL_BITS) - 1
#: A ULID in its only form here: OpenCode's ids have our prefix and our length, are in
#: lower case and carry none.
_ULID = late_pattern(f"[0-7][{_CROCKFORD}]{{25}}")


def encode(value: int) -> str:
    """Return a 128-bit integer as 26 Crockford characters.

    Every write makes several: python-ulid takes four times as long for one, and its
    import as long as a small command.
    """
    head, tail, pairs = _encode_head(value >> _TAIL_BITS), value & _TAIL, _PAIRS
    return (
        f"{head}{pairs[tail >> 30]}{pairs[tail >> 20 & 1023]}"
        f"{pairs[tail >> 10 & 1023]}{pairs[tail & 1023]}"
    )


# Most ids are made in the millisecond of another one.
@lru_cache(maxsize=2)
def _encode_head(bits: int) -> str:
    """Return the first 88 bits as 18 characters."""
    shifts = range(80, -10, -10)
    return "".join([_PAIRS[bits >> shift & 1023] for shift in shifts])


def decode(text: str) -> int:
    """Return the 128-bit integer that *text* is the canonical form of.

    Raises `InvalidInputError` for anything else.
    """
    if not _ULID.fullmatch(text):
        raise InvalidInputError(f"not a ULID: {abridged(text)}")
    value = 0
    for character in text:
        value = value << 5 | _CROCKFORD.index(character)
    return value


class Mint:
    """Mints ids that only grow (or, for sessions, only shrink) within this process."""

    def __init__(self) -> None:
        self._ascending = 0
        # The lowest session id seen, and its number; None: decoded when it is needed.
        self._floor = SESSION + "~"
        self._descending: int | None = _ALL + 1
        self.begin()

    def begin(self) -> None:
        """Begin again in a forked child: a thread of the parent may have been minting.

        The bits need to differ, not to be secret; asking the system for them each
        time costs as much as a statement.
        """
        self._lock = threading.Lock()
        self._bits = random.Random().getrandbits  # noqa: S311  seeded by the system

    def ascending(self, prefix: str) -> str:
        """Return a new id above every id minted before it."""
        with self._lock:
            fresh = now_ms() << _RANDOM_BITS
            if fresh > self._ascending:
                fresh |= self._bits(_RANDOM_BITS)
            else:
                fresh = self._ascending + 1 + self._bits(_STEP_BITS)
            self._ascending = fresh
        return prefix + encode(fresh)

    def session(self) -> str:
        """Return a new session id below every native id this process has seen."""
        with self._lock:
            fresh = _ALL - (now_ms() << _RANDOM_BITS | self._bits(_RANDOM_BITS))
            if self._descending is None:
                self._descending = decode(self._floor[len(SESSION) :])
            if fresh >= self._descending:
                fresh = self._descending - 1 - self._bits(_STEP_BITS)
            self._descending, self._floor = fresh, SESSION + encode(fresh)
            return self._floor

    def session_at(self, time: int) -> str:
        """Return a new session id whose time is *time*, in Unix ms; the floor stays."""
        with self._lock:
            return SESSION + encode(
                _ALL - (time << _RANDOM_BITS | self._bits(_RANDOM_BITS))
            )

    def saw_session(self, session_id: str) -> None:
        """Lower the floor to an id read from a database; other strings are ignored.

        So are ids dated in the far future, chosen by a caller: below one of them every
        new session would carry its date, and below the last one no number is left.
        """
        # The order of ids is that of their numbers.
        if not FAR_FUTURE < session_id < self._floor:
            return
        if not _ULID.fullmatch(session_id.removeprefix(SESSION)):
            return

        with self._lock:
            if session_id < self._floor:
                self._floor, self._descending = session_id, None


_mint = Mint()
os.register_at_fork(after_in_child=_mint.begin)
new_session_id = _mint.session
session_id_at = _mint.session_at
saw_session = _mint.saw_session


def new_message_id() -> str:
    """Return a new ``msg_`` id, above every one minted in this process."""
    return _mint.ascending(MESSAGE)


def new_part_id() -> str:
    """Return a new ``prt_`` id, above every one minted in this process."""
    return _mint.ascending(PART)


def imported_session_id(
    source: str, source_id: str, time_created: int, namespace: str = ""
) -> str:
    """Return the id of an imported session; two machines agree on it.

    The time bits hold *time_created* (Unix ms; outside of 48 bits counts as 0),
    the rest is a hash of *source*, *source_id* and of a *namespace* that is not empty.
    """
    names = filter(None, (source, source_id, namespace))
    return SESSION + encode(_ALL - _hashed_number(time_created, *names))


def imported_part_id(message_id: str, idx: int, time_created: int) -> str:
    """Return the id of an imported part without one: the same in every import.

    *idx* is its place in the message, *time_created* is in Unix ms (outside of 48 bits:
    0).
    """
    return PART + encode(_hashed_number(time_created, message_id, str(idx)))


def imported_prompt_id(source: str, usage_id: str, time_created: int) -> str:
    """Return the id of an imported prompt: that of its copies in forks, too."""
    return PART + encode(_hashed_number(time_created, "prompt", source, usage_id))


def history_prompt_id(
    source: str, session: str | None, text: str, time_created: int
) -> str:
    """Return the id of a line of a program's prompt history, made of its facts."""
    return PART + encode(
        _hashed_number(time_created, "typed", source, session or "", text)
    )


def _hashed_number(time_created: int, *names: str) -> int:
    """Return the 128 bits of a ULID: the time, then a hash of *names*."""
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).digest()
    time_bits = time_created if 0 <= time_created < 1 << 48 else 0
    return time_bits << _RANDOM_BITS | int.from_bytes(digest[:10])


def as_ulid(identifier: str) -> ULID:
    """Return the `ulid.ULID` inside a native id; a session's is complemented back.

    Raises `InvalidInputError` for an id that another program made.
    """
    # Few programs ask, and the import takes as long as a small command.
    from ulid import ULID

    return ULID.from_int(_number_of(identifier))


def time_of(identifier: str) -> int:
    """Return the Unix milliseconds inside one of our ids.

    Raises `InvalidInputError`.
    """
    return _number_of(identifier) >> _RANDOM_BITS


def _number_of(identifier: str) -> int:
    prefix, _, text = identifier.rpartition("_")
    number = decode(text)
    return _ALL - number if prefix + "_" == SESSION else number


def slug_of(session_id: str, *, length: int = 2) -> str:
    """Return a readable name made from an id: ``brave-otter-7k`` has *length* 2."""
    number = int.from_bytes(hashlib.sha256(session_id.encode()).digest()[:16])
    number, noun = divmod(number, len(_NOUNS))
    number, adjective = divmod(number, len(_ADJECTIVES))
    tail = encode(number & _ALL)[-length:].lower()
    return f"{_ADJECTIVES[adjective]}-{_NOUNS[noun]}-{tail}"


def optional_id(value: object, name: str) -> str | None:
    """Return *value* if it is None or can be an id; raises `InvalidInputError`."""
    return None if value is None else valid_id(value, name)


def valid_id(value: object, name: str) -> str:
    """Return *value* if it can be an id: 1 to 256 bytes, no control characters.

    Raises `InvalidInputError` naming *name* it was meant for.
    """
    if not isinstance(value, str) or not value:
        raise InvalidInputError(
            f"{name} must be a non-empty string, not {abridged(value)}"
        )
    # Nearly all ids; a character has four bytes at most, and half of one is not shown.
    if value.isprintable() and 4 * len(value) <= MAX_ID_BYTES:
        return value

    if not value.isprintable() and any(
        ord(c) < 32 or 127 <= ord(c) < 160 for c in value
    ):
        raise InvalidInputError(
            f"{name} contains control characters: {abridged(value)}"
        )

    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"{name} is not valid Unicode: {abridged(value)}"
        ) from None

    if size > MAX_ID_BYTES:
        raise InvalidInputError(
            f"{name} is {size} bytes, at most {MAX_ID_BYTES} are allowed"
        )

    return value


def valid_session_id(value: object) -> str:
    """Return *value* if a session can be made under it: an id that a REF can name.

    Raises `InvalidInputError`; what begins with ``@`` means the session used last.
    """
    name = valid_id(value, "a session id")
    if name.startswith("@"):
        raise InvalidInputError(
            f"a session id must not begin with @: {name!r}",
            hint="@ names the session that was used last",
        )

    return name
