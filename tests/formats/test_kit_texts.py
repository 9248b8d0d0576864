"""Values in texts: a time in RFC 3339 as milliseconds, JSON in a string as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiondb.formats.kit.texts import compact_json, json_line, take_json, time_of_text

NOON = 1_764_072_000_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2025-11-25T12:00:00Z", NOON),
        ("2025-11-25t12:00:00z", NOON),
        ("2025-11-25T12:00:00.000Z", NOON),
        ("2025-11-25T13:30:00+01:30", NOON),
        ("2025-11-25T00:00:00-12:00", NOON),
        ("2025-11-25T12:00:00-00:00", NOON),
        ("2025-11-25T12:00:00.5Z", NOON + 500),
        ("2025-11-25T12:00:00.07+00:00", NOON + 70),
        ("2025-11-25T12:00:00.123456789Z", NOON + 123),
        ("2025-11-25T12:00:00.9999999999999999999Z", NOON + 999),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
    ],
)
def test_a_time_in_rfc_3339_is_milliseconds(text: str, ms: int) -> None:
    assert time_of_text(text) == ms


@pytest.mark.parametrize(
    "value",
    [
        None, 1_764_072_000_000, 1.5, True, [], {}, b"2025-11-25T12:00:00Z", "", "now",
        # No offset, no time, no seconds, a space, a week, no separators.
        "2025-11-25T12:00:00", "2025-11-25", "2025-11-25T12:00Z", "2025-11-25 12:00:00Z",
        "2025-W48-2T12:00:00Z", "20251125T120000Z", "2025-11-25T12:00:00+0100",
        "2025-11-25T12:00:00+01", "2025-11-25T12:00:00 Z", "2025-11-25T12:00:00,5Z",
        "2025-11-25T12:00:00.Z", " 2025-11-25T12:00:00Z", "2025-11-25T12:00:00Z\n",
        # Outside of the calendar or the clock.
        "2025-02-29T00:00:00Z", "2025-13-01T00:00:00Z", "2025-00-01T00:00:00Z",
        "2025-11-31T00:00:00Z", "0000-01-01T00:00:00Z", "2025-11-25T24:00:00Z",
        "2025-11-25T12:60:00Z", "2016-12-31T23:59:60Z", "2025-11-25T12:00:00+24:00",
        "2025-11-25T12:00:00+01:60", "12025-11-25T12:00:00Z", "-025-11-25T12:00:00Z",
        # Times that no session has.
        "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "2101-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59",
        # Digits of other scripts, a fullwidth colon.
        "\u0662\u0660\u0662\u0665-11-25T12:00:00Z", "2025-11-25T12\uff1a00:00Z",
    ],
)  # fmt: skip
def test_anything_else_is_not_a_time(value: object) -> None:
    assert time_of_text(value) is None


@given(st.integers(0, 4_102_444_800_000))
def test_a_time_is_found_again_to_the_millisecond(ms: int) -> None:
    seconds, millis = divmod(ms, 1000)
    text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{millis:03}Z"
    assert time_of_text(text) == ms


@pytest.mark.parametrize(
    ("text", "value", "stays"),
    [
        ('{"a":1}', {"a": 1}, False),
        ('["é",null,1.5]', ["é", None, 1.5], False),
        ("{}", {}, False),
        # The same text cannot be made from the value again.
        ('{"a": 1}', {"a": 1}, True),
        ('{"a":1}\n', {"a": 1}, True),
        ('{"a":1,"a":2}', {"a": 2}, True),
        (r'{"a":"\u00e9"}', {"a": "é"}, True),
        ('{"a":1.0e2}', {"a": 100.0}, True),
        # Texts, whatever they look like.
        ("", "", False),
        ("*** Begin Patch", "*** Begin Patch", False),
        ('{"a":', '{"a":', False),
        ("12", "12", False),
        ("null", "null", False),
        ('"quoted"', '"quoted"', False),
        ('{"a":NaN}', '{"a":NaN}', False),
        ('{"a":1e999}', '{"a":1e999}', False),
        ('{"a":' + "9" * 30 + "}", '{"a":' + "9" * 30 + "}", False),
        ("[" * 400 + "]" * 400, "[" * 400 + "]" * 400, False),
        ("[" * 90_000, "[" * 90_000, False),
    ],
)
def test_json_in_a_text_is_decoded_or_the_text_is_kept(
    text: str, value: Any, stays: bool
) -> None:
    record = {"arguments": text, "name": "shell"}
    assert take_json(record, "arguments") == value
    assert record == {"name": "shell", **({"arguments": text} if stays else {})}
    if not stays:
        assert (value if isinstance(value, str) else compact_json(value)) == text


@pytest.mark.parametrize("value", [None, {"a": 1}, ["a"], 5, True, 0.5])
def test_a_value_that_is_not_a_text_stays_in_its_record(value: object) -> None:
    record = {"arguments": value}
    assert take_json(record, "arguments") is None
    assert record == {"arguments": value}
    assert take_json({}, "arguments") is None


@pytest.mark.parametrize("value", ["half \ud800", "\udfff\0", "é 👋", "plain"])
def test_a_line_of_a_log_is_utf8_that_holds_the_same_value(value: str) -> None:
    line = json_line({"text": value})
    assert json.loads(line.encode()) == {"text": value}
    assert ("é" in line) == ("é" in value)
