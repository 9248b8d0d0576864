"""The caps of ``scripts/check`` measure the load of the code on its reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from measuring.caps import Offence, offences, violations
from measuring.circles import circles
from measuring.main import row
from measuring.source import Source


def names(*sources: Source) -> list[str]:
    return [offence.name for offence in offences(sources, "package")]


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


def test_code_above_a_cap_is_named() -> None:
    at = [
        function("x = 1\n" + "    x = 2\n" * 79),
        function("x = 1\n" + "    if a: pass\n" * 20),
        "\n" * 500,
        "#" * 88,
    ]
    assert names(*(Source("a.py", text) for text in at)) == []

    above = [
        function("x = 1\n" + "    x = 2\n" * 80),
        function("x = 1\n" + "    if a: pass\n" * 21),
        "\n" * 501,
        "#" * 89,
    ]
    sources = [Source(f"in/{n}.py", text) for n, text in enumerate(above)]
    assert names(*sources) == [
        "long in/0.py:f",
        "heavy in/1.py:f",
        "file in/2.py",
        "wide in",
    ]


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


def test_a_new_offence_fails_and_so_does_an_entry_that_is_none() -> None:
    found = [Offence("heavy a.py:f", "12 branches"), Offence("wide b", "1 line")]
    assert violations(found, ["heavy a.py:f", "wide b"]) == []
    assert violations(found, ["wide b", "file c.py"]) == [
        "heavy a.py:f: 12 branches",
        "file c.py: no longer an offence; remove it from the list",
    ]


def test_the_table_counts_per_line_of_the_bodies(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.py"
    file.parent.mkdir()
    file.write_text(
        "# Why\n" + function("if a:  # noqa\n        pass\n\n    return") + "#" * 89
    )
    source = Source.read(file, tmp_path)
    assert source.folder == "a"
    cells = row("a", [source]).split()
    assert cells == ["a", "7", "4", "0.25", "0", "25.0", "50.0", "1"]
