"""Fields of a session that two databases may change, and which value of each wins.

Every field has a version: the revision of the session at which it got its value,
a time, and a digest of the value. Of two values the one with the greater version
holds. That order is total and depends on nothing else, so databases that merge the
same states, in whatever order and however often, end with the same values.

A database does not record each change. It keeps the versions that it last
agreed on with a log (its merge base); a field whose value has another digest
than there was changed here since, and its version is the session's revision.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sessiondb.model.nones import without_none

#: Fields that a session has once. Others are ``metadata/KEY`` and ``label/NAME``.
TITLE, ARCHIVED, LEAF, TODOS, DIFFS, ABOUT, SUMMARY, DATA = (
    "title", "archived", "leaf", "todos", "diffs", "about", "summary", "data",
)  # fmt: skip
METADATA, LABEL = "metadata/", "label/"
#: Fields that are one column each.
PLAIN = ("share_url", "revert", "permission", "time_compacting", "scope")
ABOUT_FIELDS = ("version", "agent", "provider_id", "model_id", "model_source")
SUMMARY_FIELDS = (
    "summary_additions",
    "summary_deletions",
    "summary_files",
    "summary_diffs",
)

#: Not a field: the leaf as the last merge left it, by its digest. A leaf that was moved
#: since is the place where a user works here.
SETTLED = "settled"
#: ``data`` of a session: records of a log whose type is not known, to be written back.
UNKNOWN = "jsonl_records"

#: Who gave a title: one of a lower rank never replaces one of a higher.
TITLE_RANK = {"derived": 0, "agent": 1, "user": 2}


class Version(NamedTuple):
    """When a field got its value: two of them compare as the values do."""

    revision: int
    time: int
    digest: str = ""


def digest(value: Any) -> str:
    """Return a short hash, the same for equal values of JSON, bytes included."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), default=_bytes_object
    )
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=8
    ).hexdigest()


def _bytes_object(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return {"$bytes": base64.b64encode(bytes(value)).decode()}


def order(name: str, value: Any, version: Version) -> tuple[Any, ...]:
    """Return the key by which values of one field compare; the greatest one holds.

    A title that the user gave is never replaced by one of an agent.
    """
    rank = 0
    if name == TITLE and value:
        _, set_by = value
        rank = TITLE_RANK.get(set_by, 0)
    return (rank, *version)


def about_of(columns: Mapping[str, Any]) -> list[Any]:
    """Return the value of `ABOUT`; a model derived from messages is not part of it."""
    about = {name: columns.get(name) for name in ABOUT_FIELDS}
    if about["model_source"] in (None, "derived"):
        about |= dict.fromkeys(("provider_id", "model_id", "model_source"))
    return list(about.values())


def values_of(
    *,
    title: tuple[str, str],
    metadata: Mapping[str, Any],
    labels: Mapping[str, str],
    todos: list[Any],
    diffs: list[Any],
    about: list[Any],
    summary: tuple[Any, ...],
    data: Mapping[str, Any],
    **plain: Any,
) -> dict[str, Any]:
    """Return the fields with a value; *plain*: `PLAIN`, ``archived`` and ``leaf``."""
    fields = without_none(plain)
    if title != ("", "derived"):
        fields[TITLE] = list(title)

    several = {
        ABOUT: _unless_unknown(about),
        SUMMARY: _unless_unknown(summary),
        TODOS: todos,
        DIFFS: diffs,
        DATA: data,
    }
    fields |= {name: items for name, items in several.items() if items}
    # In a list: null is a value, too.
    fields |= {METADATA + key: [value] for key, value in metadata.items()}
    fields |= {LABEL + name: message_id for name, message_id in labels.items()}
    return fields


def _unless_unknown(values: Sequence[Any]) -> list[Any]:
    """Return *values*, or an empty list where each is None."""
    return [] if values.count(None) == len(values) else list(values)


def versions_of(
    values: Mapping[str, Any], base: Mapping[str, Version], revision: int, time: int
) -> dict[str, Version]:
    """Return the version of every field that has, or had, a value.

    *base* is the merge base, *revision* and *time* (of its last use) the session's.
    """
    # `ABOUT` has no time: what a session was made with is older than any change.
    times = without_none({ARCHIVED: values.get(ARCHIVED), ABOUT: 0})
    first = {ABOUT: 0}

    versions: dict[str, Version] = {}
    for name in (values.keys() | base.keys()) - {SETTLED}:
        version = base.get(name)
        content = digest(values.get(name))
        if version is None:
            changed = first.get(name, revision)
        elif version.digest != content:
            changed = max(revision, version.revision + 1)
        else:
            versions[name] = version
            continue

        versions[name] = Version(changed, times.get(name, time), content)

    return versions


def encoded(versions: Mapping[str, Version]) -> str:
    """Return versions as the text that a merge base is stored as."""
    return json.dumps({name: list(v) for name, v in sorted(versions.items())})


def decoded(text: str | None) -> dict[str, Version]:
    """Return the versions that `encoded` was given; None means without a merge base."""
    return {name: Version(*v) for name, v in json.loads(text or "{}").items()}
