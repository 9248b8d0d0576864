"""Names of the files of transcripts: the day, the title, the end of the id."""

from __future__ import annotations

import unicodedata

from sessiondb.model import Session
from sessiondb.patterns import late_pattern
from sessiondb.words import moment

#: Characters of a title in a name, and their bytes: a name may have 255.
TITLE_LENGTH, TITLE_BYTES = 60, 180
#: Characters of the id, which make the name unique and are a REF.
_ID_LENGTH = 6
_UNSAFE = late_pattern(r"[^\w.]+")


def transcript_name(session: Session, used: set[str]) -> str:
    """Return ``2026-02-11-release-notes-for-0.3-c12mse``, and add it to *used*.

    The day (UTC) is that of the first use. A name in *used* is not given again: then
    the complete id is in it.
    """
    day = moment(session.time_created, "%Y-%m-%d")
    title = _title_in_name(session.title)
    for end in (session.id[-_ID_LENGTH:].lower(), session.id):
        name = f"{day}-{title}-{_in_name(end)}".replace("--", "-")
        if name not in used:
            break
    used.add(name)
    return name


def _title_in_name(title: str) -> str:
    words = _in_name(unicodedata.normalize("NFC", title[: TITLE_LENGTH * 8]).lower())
    if len(words) > TITLE_LENGTH:
        # Up to the last complete word, unless it is a long one.
        words = words[:TITLE_LENGTH]
        start, dash, _ = words.rpartition("-")
        if dash and len(start) > TITLE_LENGTH // 2:
            words = start
    short = words.encode()[:TITLE_BYTES].decode(errors="ignore")
    return short.strip("-.")


def _in_name(text: str) -> str:
    """Return *text* with a dash for each run of what is not a letter or a digit."""
    return _UNSAFE.sub("-", text).strip("-.")
