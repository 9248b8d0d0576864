"""The texts of candidates, compared with what a query means.

The server tells which parts, titles and prompts have the words. Whether they have them
as the query means it, is decided here, by the functions that every engine uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sessiondb.engine.base import SNIPPET_MARKS
from sessiondb.engine.postgresql.search_query import read_match, read_possible
from sessiondb.engine.postgresql.search_statements import SIBLINGS, TEXTS
from sessiondb.engine.postgresql.search_walk import Candidate
from sessiondb.engine.postgresql.search_writing import Texts, read_texts
from sessiondb.engine.search_comparison import (
    PartTexts,
    fold,
    has_together,
    is_meant,
)
from sessiondb.engine.search_excerpts import excerpt, passage
from sessiondb.engine.sql import Read, as_list

_MARK_BEGIN, _MARK_END = SNIPPET_MARKS


def comparison_of(params: Mapping[str, Any]) -> str:
    """Return what a title or prompt is compared with."""
    for name in ("scanned", "comparison"):
        if name in params:
            return str(params[name])
    return read_match(params["match"]).comparison


def words_in_title(params: Mapping[str, Any], comparison: str) -> dict[str, str]:
    """Return the parameters of what a title or prompt has, if it may be meant."""
    possible = read_possible(comparison).params()
    if params["match"] is None:
        return possible
    return possible | {"in_title": read_match(params["match"]).in_title}


def shown_title(
    comparison: str, params: Mapping[str, Any], title: str, own_id: str | None
) -> str | None:
    """Return what is shown of a title, or of an id; None if neither is meant."""
    if is_meant(comparison, None, title):
        if "needles" in params:
            return passage(params["needles"], title)
        return excerpt(comparison, title)
    wanted_id = params.get("own_id")
    if wanted_id is not None and own_id is not None and own_id.startswith(wanted_id):
        return f"{_MARK_BEGIN}{own_id}{_MARK_END}"
    return None


def texts_at(places: Iterable[int]) -> Read[dict[int, tuple[str, Texts]]]:
    """Return by its place the message id and the texts of each part."""
    numbers = as_list(places)
    rows = (yield TEXTS, {"places": numbers}) if numbers != "[]" else []
    return {
        place: (message_id, read_texts(texts)) for place, message_id, *texts in rows
    }


def meant_candidates(
    candidates: list[Candidate], params: Mapping[str, Any]
) -> Read[list[Candidate]]:
    """Return the candidates that are what a query means."""
    if "spread" in params:
        places = [candidate.place for candidate in candidates]
        meant: set[int] = yield from meant_together(params["spread"], places)
        return [candidate for candidate in candidates if candidate.place in meant]

    match = read_match(params["match"])
    is_exact = "comparison" not in params
    # A word is in one chunk, wherever it is.
    says_all = match.in_order is None and match.in_chunk == match.words
    compared = [
        candidate.place
        for candidate in candidates
        if not is_exact or (candidate.is_partial and not says_all)
    ]
    texts = {each.place: read_texts(each.texts) for each in candidates if each.texts}
    unread = [place for place in compared if place not in texts]
    for place, (_, read) in (yield from texts_at(unread)).items():
        texts[place] = read
    meant = set()
    for place in compared:
        if place in texts:
            words, *columns = texts[place]
            if is_meant(match.comparison, words, *columns):
                meant.add(place)
    meant |= {candidate.place for candidate in candidates}.difference(compared)

    if "together" in params:
        asked = [each.place for each in candidates if each.has_siblings]
        asked = [place for place in asked if place in meant]
        together = yield from meant_together(params["together"], asked)
        meant -= set(asked) - together
    return [candidate for candidate in candidates if candidate.place in meant]


def meant_together(wanted: str, places: list[int]) -> Read[set[int]]:
    """Return those of parts whose message has *wanted*: see `has_together`."""
    messages: dict[int, list[PartTexts]] = {}
    rows = (yield SIBLINGS, {"places": as_list(places)}) if places else []
    for asked, place, *row in rows:
        words, *columns = read_texts(row)
        part = PartTexts(place, fold(words or ""), [fold(text) for text in columns])
        messages.setdefault(asked, []).append(part)
    return {
        place for place, parts in messages.items() if has_together(wanted, place, parts)
    }
