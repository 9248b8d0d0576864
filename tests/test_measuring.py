"""The caps of ``scripts/check`` measure the load of the code on its reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from measuring.caps import offences, warnings
from measuring.circles import circles
from measuring.main import row
from measuring.rooms import Room, fallen_behind, rooms, to_be_mended
from measuring.source import Source


def function(body: str, name: str = "f") -> str:
    return f"def {name}():\n    {body}\n"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return 1", 0),
        ("if a: pass\n    elif b: pass\n    else: pass", 2),
        ("return a if b else c", 1),
        ("return a and b and not c or d", 3),
        ("return [a for a in b if a]", 1),
        ("return {a: b for c in d for a, b in c}", 2),
        ("for a in b: pass\n    while c: pass", 2),
        ("try: pass\n    except A: pass\n    except B: pass\n    finally: pass", 2),
        ("match a:\n        case 1: pass\n        case _: pass", 2),
        ("def g(): return a or b\n    return g", 1),
        ("with a: assert b", 0),
    ],
)
def test_a_branch_is_a_decision_an_operand_or_a_comprehension(
    body: str, count: int
) -> None:
    first, *_ = Source("a.py", function(body)).functions
    assert first.branches == count


def test_a_docstring_does_not_count_as_length() -> None:
    text = 'def f():\n    """One.\n\n    Two.\n    """\n\n    return 1\n'
    (measured,) = Source("a.py", text).functions
    assert (measured.lines, measured.blank) == (2, 1)


def test_a_function_is_named_with_its_class() -> None:
    source = Source("a.py", "class A:\n    def f(self):\n        def g(): pass\n")
    assert [each.name for each in source.functions] == ["A.f", "A.f.g"]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return next(a, None)", 1),
        ("return list(map(a, filter(b, c)))", 2),
        ("return any((a, b))", 1),
        ("return any(a for a in b)", 0),
        ("return {1: a}.get(b)(c)", 1),
        ("a |= b > c", 1),
        ("a += 1", 0),
        ("return filter(a.__contains__, b)", 2),
        ("return a.get(b)", 0),
    ],
)
def test_a_hidden_branch_is_a_decision_in_other_clothes(body: str, count: int) -> None:
    first, *_ = Source("a.py", function(body)).functions
    assert first.hidden == count


def test_a_file_above_a_cap_is_an_offence() -> None:
    within = [Source("a.py", "\n" * 500), Source("b.py", "#" * 88)]
    assert list(offences(within, "package")) == []
    above = [Source("in/a.py", "\n" * 501), Source("in/b.py", "#" * 89)]
    assert list(offences(above, "package")) == [
        "in/a.py: 501 lines; at most 500",
        "in/b.py: 1 lines over 88 columns",
    ]


def test_a_function_above_a_cap_is_a_warning() -> None:
    within = function("x = 1\n" + "    x = 2\n" * 79)
    long = function("x = 1\n" + "    x = 2\n" * 80)
    heavy = function("x = 1\n" + "    if a: pass\n" * 21)
    sources = [Source(f"{n}.py", text) for n, text in enumerate((within, long, heavy))]
    assert list(warnings(sources)) == [
        "1.py:1 f has 81 lines",
        "2.py:1 f has 21 branches",
    ]
    assert list(offences(sources, "package")) == []


@pytest.mark.parametrize(
    ("text", "circle"),
    [
        ("from package import b", True),
        ("from package.b import name", True),
        ("def f():\n    import package.b", True),
        ("import_module('package.b')", True),
        ("if TYPE_CHECKING:\n    from package import b", False),
        ("import b", False),
    ],
)
def test_modules_that_import_each_other_are_found(text: str, circle: bool) -> None:
    found = circles(
        [
            Source("a.py", text),
            Source("b.py", "from package.c.d import name"),
            Source("c/d.py", "from package import a"),
            Source("c/__init__.py", "from package import e"),
            Source("e.py", ""),
        ],
        "package",
    )
    assert found == ([["a.py", "b.py", "c/d.py"]] if circle else [])


def test_a_package_that_imports_its_own_modules_is_not_a_circle() -> None:
    package = Source("c/__init__.py", "from package.c import d")
    module = Source("c/d.py", "from package.c import e")
    assert circles([package, module, Source("c/e.py", "")], "package") == []


PLAIN = "def read_line(line):\n    if line:\n        return line\n"
ODD = "def _at(where):\n    return next(where)\ndef read(line):\n    return _at(line)\n"


def plainness(text: str) -> dict[str, float]:
    (room,) = rooms([Source("a/b.py", text)])
    return room.plainness(Source("a/b.py", text).uses)


def test_the_figures_of_a_room_are_shares() -> None:
    assert plainness(PLAIN) == {"hidden": 0, "vague": 0, "words": 2, "once": 0}
    assert plainness(ODD) == {"hidden": 100, "vague": 250, "words": 1, "once": 50}


def test_a_room_without_functions_has_reached_the_goals() -> None:
    assert not list(fallen_behind({"a": plainness("PLACE = 1\n")}, {}))


def test_a_room_may_not_become_worse_than_it_was_written_down() -> None:
    before = {"a": plainness(ODD)}
    table = to_be_mended(before)
    assert list(fallen_behind(before, table)) == []
    worse = {"a": {**plainness(ODD), "vague": 300.0, "words": 0.9}}
    assert list(fallen_behind(worse, table)) == [
        "a: vague 300.0; it was 250.0",
        "a: words 0.9; it was 1.0",
    ]


def test_a_room_that_has_reached_the_goals_may_move_within_them() -> None:
    assert to_be_mended({"a": plainness(PLAIN)}) == {}
    within = {"hidden": 2.9, "vague": 3.0, "words": 1.7, "once": 2.5}
    assert list(fallen_behind({"a": within}, {})) == []
    assert list(fallen_behind({"a": {**within, "words": 1.5}}, {})) == [
        "a: words 1.5; it was 1.7"
    ]


def test_the_table_counts_per_line_of_the_bodies(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.py"
    file.parent.mkdir()
    file.write_text("# Why\n" + function("if a:  # noqa\n        pass\n\n    return"))
    source = Source.read(file, tmp_path)
    assert source.folder == "a"
    room = Room("a", [source])
    cells = row(room, room.plainness(source.uses)).split()
    assert cells == ["a", "6", "4", "0.25", "0.0", "0.0", "1.00", "0.0", "25.0", "25.0"]
