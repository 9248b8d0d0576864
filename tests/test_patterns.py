"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from sessiondb.patterns import late_pattern


def test_a_late_pattern_does_what_a_compiled_one_does() -> None:
    late, compiled = (
        late_pattern("(a)|b", re.IGNORECASE),
        re.compile("(a)|b", re.IGNORECASE),
    )
    assert late.sub("x", "AbC") == compiled.sub("x", "AbC") == "xxC"
    assert late.findall("abA") == compiled.findall("abA")
    assert [late.pattern, late.flags] == [compiled.pattern, compiled.flags]
    assert late.fullmatch("c") is None


def test_a_late_pattern_is_compiled_when_it_is_first_used() -> None:
    wrong = late_pattern("(")
    with pytest.raises(re.error):
        wrong.search("")
