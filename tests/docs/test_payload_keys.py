"""The keys of ``data`` that this library gives a meaning are on the page about the file.

A key that code reads and the page does not name fails here, and so does one that the
page names and nothing reads. Rooms of foreign formats read their own records.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessiondb.formats.registry import REGISTRY

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "src" / "sessiondb"
#: They read the records of other programs, or keep what other programs wrote.
FOREIGN = (
    "formats/kit",
    "formats/providers",
    *(
        entry.reads.removeprefix("sessiondb.").replace(".", "/")
        for entry in REGISTRY.values()
        if entry.reads and entry.reads.startswith("sessiondb.formats.")
    ),
)
#: Names of variables whose ``data`` (or that themselves) are the data of a message or part.
HOLDERS = {"message", "part", "item", "entry", "draft"}


def modules() -> list[Path]:
    """Return every module that interprets messages and parts."""
    files = sorted(PACKAGE.rglob("*.py"))
    return [
        f for f in files if not f.relative_to(PACKAGE).as_posix().startswith(FOREIGN)
    ]


def is_data(node: ast.expr, aliases: set[str]) -> bool:
    """Return whether an expression is the data of a message or part."""
    if isinstance(node, ast.Name):
        return node.id in aliases
    if not isinstance(node, ast.Attribute) or node.attr != "data":
        return False
    holder = node.value
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    name = (
        holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
    )
    return name.rstrip("s") in HOLDERS


def aliases_of(function: ast.AST) -> set[str]:
    """Return the names that a function gives to the data of a message or part."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and is_data(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def is_unpacked(node: ast.expr, function: ast.AST) -> bool:
    """Return whether an expression is a name of data that was read from a row."""
    return isinstance(node, ast.Name) and any(
        isinstance(assigned, ast.Assign)
        and ast.unparse(assigned.targets[0]) == node.id
        and ast.unparse(assigned.value).startswith("codec.unpack(")
        for assigned in ast.walk(function)
    )


def keys_of(node: ast.expr, function: ast.AST) -> set[str]:
    """Return the keys that an expression can be: a constant, or the values of a loop."""
    if isinstance(node, ast.Constant):
        return {str(node.value)}
    assert isinstance(node, ast.Name), (
        f"line {node.lineno}: a key that cannot be read off"
    )
    for loop in ast.walk(function):
        if (
            isinstance(loop, ast.comprehension | ast.For)
            and ast.unparse(loop.target) == node.id
        ):
            assert isinstance(loop.iter, ast.Tuple)
            return {
                str(item.value)
                for item in loop.iter.elts
                if isinstance(item, ast.Constant)
            }
    raise AssertionError(f"line {node.lineno}: a key that cannot be read off")


def reads(tree: ast.AST) -> Iterator[str]:
    """Yield every key of ``data`` that a module reads."""
    functions = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for function in functions:
        aliases = aliases_of(function)
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("get", "pop")
                and is_data(node.func.value, aliases)
            ):
                yield from keys_of(node.args[0], function)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "get"
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and is_unpacked(node.func.value, function)
            ):
                yield str(node.args[0].value)
            elif (
                isinstance(node, ast.Call)
                and node.args
                and is_data(node.args[0], aliases)
            ):
                # A helper that is given the data and the keys to look for.
                yield from (
                    key.value
                    for keys in node.args[1:]
                    if isinstance(keys, ast.Tuple)
                    for key in keys.elts
                    if isinstance(key, ast.Constant)
                )
            elif isinstance(node, ast.Subscript) and is_data(node.value, aliases):
                yield from keys_of(node.slice, function)
            elif (
                isinstance(node, ast.Compare)
                and isinstance(node.ops[0], ast.In | ast.NotIn)
                and is_data(node.comparators[0], aliases)
            ):
                yield from keys_of(node.left, function)


def documented() -> set[str]:
    """Return the keys in the table of the page."""
    page = (ROOT / "docs" / "FORMAT.md").read_text()
    section = re.search(r"(?ms)^### Keys of data\n(.*?)(?=^##)", page)
    assert section is not None
    rows = re.findall(r"(?m)^\| [^|]*\| ([^|]+) \|[^|]*\|$", section[1])
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


@pytest.mark.slow
def test_every_key_that_is_read_is_on_the_page_and_no_other() -> None:
    read = {key for path in modules() for key in reads(ast.parse(path.read_text()))}
    assert read - documented() == set(), "read, and not on the page"
    assert documented() - read == set(), "on the page, and never read"
    assert len(read) > 15


@pytest.mark.parametrize(
    ("code", "keys"),
    [
        ('def f(message): return message.data.get("a")', {"a"}),
        (
            'def f(part): return part.data["a"] if "b" in part.data else None',
            {"a", "b"},
        ),
        ('def f(message): return message.parts[0].data.get("a")', {"a"}),
        ('def f(part):\n data = part.data\n return data.get("a")', {"a"}),
        ('def f(item): return [item.data.get(k) for k in ("a", "b")]', {"a", "b"}),
        ('def f(session): return session.data.get("a")', set()),
    ],
)
def test_the_search_for_keys_finds_each_way_to_read_one(
    code: str, keys: set[str]
) -> None:
    assert set(reads(ast.parse(code))) == keys
