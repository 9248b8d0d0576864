"""The house of docs/DESIGN.md: who may import whom, and how large a room may grow.

Data flows one way. An import inside a function counts like one at the top; only
``if TYPE_CHECKING`` is free, for it never runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "sessiondb"
FILES = sorted(PACKAGE.rglob("*.py"))

#: A room may import what stands before it, and itself.
ORDER = (
    "errors arguments hints clock ids places model codec schema engine effects writer "
    "streaming repository location formats database importing "
    "store aio adapters testing maintenance cli __main__"
).split()
#: A room that may import less than its place in the order allows.
ONLY = {"formats": {"errors", "model"}}
#: What knows one library, so that no other room has to.
LIBRARIES = {
    "alembic": {"engine"},
    "click": {"cli"},
    "markdown_it": {"formats"},
    "msgpack": {"codec"},
    "pygments": {"formats"},
    "rich": {"cli"},
    "sqlalchemy": {
        "schema",
        "engine",
        "effects",
        "repository",
        "database",
        "importing",
        "store",
        "adapters",
        "streaming",
        "writer",
    },
    "ulid": {"ids"},
}
MAX_FILE, MAX_FUNCTION = 600, 60


def imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import that can run; ``from a import b`` is ``a.b``."""
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        children = iter(node.orelse)
    elif isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (
            (node.lineno, f"{node.module}.{alias.name}") for alias in node.names
        )
    elif isinstance(node, ast.Call) and _called(node) in (
        "import_module",
        "__import__",
    ):
        yield from (
            (node.lineno, str(a.value))
            for a in node.args
            if isinstance(a, ast.Constant)
        )
    for child in children:
        yield from imports(child)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def complaint(room: str, imported: str) -> str | None:
    """Say why *room* may not import a dotted name, None if it may."""
    top, _, rest = imported.partition(".")
    target = rest.partition(".")[0]
    if top != "sessiondb":
        owners = LIBRARIES.get(top)
        return (
            f"only {sorted(owners)} know {top}"
            if owners and room not in owners
            else None
        )
    if target in (room, "__version__"):
        return None
    if target not in ORDER:  # a name of the front door, which opens into the store
        target = "store"
    allowed = ONLY.get(room, set(ORDER[: ORDER.index(room)]))
    return None if target in allowed else f"{room} must not know {target}"


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def broken_imports(source: str, room: str) -> list[str]:
    """Return one line of text per import that goes the wrong way."""
    found = []
    for line, name in imports(ast.parse(source)):
        why = complaint(room, name)
        if why:
            found.append(f"line {line}: import of {name}: {why}")
    return found


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function's body, its docstring left out."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (
        function.end_lineno - body[0].lineno + 1 if body and function.end_lineno else 0
    )


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_a_package_imports_only_what_stands_above_it(file: Path) -> None:
    room = room_of(file)
    if room == "__init__":  # the front door opens every room
        return
    assert room in ORDER, f"{file}: give it a place in ORDER"
    broken = broken_imports(file.read_text(), room)
    assert not broken, "\n".join(f"{file}:{line}" for line in broken)


def test_no_file_is_longer_than_one_can_keep_in_mind() -> None:
    lengths = {file: len(file.read_text().splitlines()) for file in FILES}
    long = [f"{file}: {n} lines" for file, n in lengths.items() if n > MAX_FILE]
    assert not long, "\n".join(long)


def test_no_function_is_longer_than_one_screen() -> None:
    long = [
        f"{file}:{node.lineno}: {node.name} has {body_lines(node)} lines"
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and body_lines(node) > MAX_FUNCTION
    ]
    assert not long, "\n".join(long)


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("model", "from sessiondb.store import Store"),
        ("model", "import sessiondb.store"),
        ("codec", "from sessiondb import engine"),
        ("engine", "def f():\n    from sessiondb.location import database"),
        ("engine", "def f():\n    import_module('sessiondb.location')"),
        ("effects", "from sessiondb.repository import sessions"),
        ("repository", "from sessiondb import Store"),
        ("formats", "from sessiondb.codec import encode"),
        ("formats", "import sqlalchemy.exc"),
        ("store", "from sessiondb.cli import main"),
        ("cli", "import msgpack"),
        (
            "schema",
            "if TYPE_CHECKING:\n    pass\nelse:\n    from sessiondb import engine",
        ),
    ],
)
def test_an_import_against_the_flow_is_named_with_its_line(
    room: str, source: str
) -> None:
    (broken,) = broken_imports(source, room)
    assert broken.startswith(f"line {len(source.splitlines())}: ")


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("engine", "from sessiondb import __version__"),
        ("engine", "from sessiondb.schema.ddl import HEAD"),
        ("engine", "if TYPE_CHECKING:\n    from sessiondb.store import Store"),
        ("formats", "from sessiondb.formats import opencode"),
        ("repository", "from sessiondb.model.paths import path_to"),
        ("aio", "from sessiondb.store import Store"),
        ("cli", "def f():\n    from sessiondb import Store"),
    ],
)
def test_an_import_with_the_flow_is_free(room: str, source: str) -> None:
    assert broken_imports(source, room) == []


def test_a_docstring_does_not_count_as_length() -> None:
    (function,) = ast.parse(
        'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'
    ).body
    assert isinstance(function, ast.FunctionDef)
    assert body_lines(function) == 1
