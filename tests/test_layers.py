"""The layers of docs/DESIGN.md: which may import which.

Data flows one way. An import inside a function counts like one at the top, and so does
a string that names a module; only ``if TYPE_CHECKING`` is free, for it never runs. The caps on length and branches are
in ``scripts/measuring``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from measuring.source import imports

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "sessiondb"
FILES = sorted(PACKAGE.rglob("*.py"))

#: A layer may import the layers before it, and itself.
ORDER = (
    "dataclass patterns errors words moments readers arguments hints clock living loading ids places model prices codec schema engine extensions "
    "formats effects writer streaming repository location database importing "
    "store aio adapters testing maintenance statements cli __main__"
).split()
#: A layer that may import less than its place in the order allows.
ONLY: dict[str, set[str]] = {
    "formats": {"dataclass", "errors", "model", "patterns", "readers", "words"},
    "words": set(),
    "readers": set(),
}
#: The only layers that may import each library.
LIBRARIES = {
    "agents": {"adapters"},
    "alembic": {"engine"},
    "claude_agent_sdk": {"adapters"},
    "click": {"cli"},
    "google": {"adapters"},
    "langchain_core": {"adapters"},
    "langgraph": {"adapters"},
    "markdown_it": {"formats"},
    "msgpack": {"codec", "formats"},
    "psycopg": {"engine"},
    "pydantic": {"adapters"},
    "pydantic_ai": {"adapters"},
    "pygments": {"formats"},
    "rich": {"cli"},
    "sqlalchemy": {"schema", "engine", "statements", "adapters"},
    "strands": {"adapters"},
    "ulid": {"ids"},
}


#: A string that names a module of the package, as `import_module` takes it.
MODULE_NAME = re.compile(r"sessiondb(\.\w+)+")


def complaint(layer: str, imported: str) -> str | None:
    """Say why *layer* may not import a dotted name, None if it may."""
    top, _, rest = imported.partition(".")
    target = rest.partition(".")[0]
    if top != "sessiondb":
        owners = LIBRARIES.get(top)
        return (
            f"only {sorted(owners)} know {top}"
            if owners and layer not in owners
            else None
        )
    if target in (layer, "__version__"):
        return None
    if target not in ORDER:  # a name of the front door, which opens into the store
        target = "store"
    allowed = ONLY.get(layer, set(ORDER[: ORDER.index(layer)]))
    return None if target in allowed else f"{layer} must not know {target}"


def layer_of(file: Path) -> str:
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def modules_in_strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each string that is the name of a module of the package.

    A module can be imported by its name from anywhere, so the name counts, not the
    call that imports it.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.removesuffix(".")
            if MODULE_NAME.fullmatch(name) and name.split(".")[1] in ORDER:
                yield node.lineno, name


def broken_imports(source: str, layer: str) -> list[str]:
    """Return one line of text per import that goes the wrong way."""
    tree = ast.parse(source)
    broken = []
    for line, name in sorted({*imports(tree), *modules_in_strings(tree)}):
        why = complaint(layer, name)
        if why:
            broken.append(f"line {line}: import of {name}: {why}")
    return broken


@pytest.mark.slow
def test_a_package_imports_only_the_packages_above_it() -> None:
    # The front door opens every layer.
    layers = {file: layer_of(file) for file in FILES if layer_of(file) != "__init__"}
    assert set(layers.values()) <= set(ORDER), "give it a place in ORDER"
    broken = {
        file: broken_imports(file.read_text(), layer) for file, layer in layers.items()
    }
    assert not {file: lines for file, lines in broken.items() if lines}


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("model", "from sessiondb.store import Store"),
        ("model", "import sessiondb.store"),
        ("codec", "from sessiondb import engine"),
        ("engine", "def f():\n    from sessiondb.location import database"),
        ("engine", "def f():\n    import_module('sessiondb.location')"),
        ("formats", "READS = {'sessiondb': 'sessiondb.importing.databases'}"),
        ("formats", "def f(name):\n    return f'sessiondb.importing.{name}'"),
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
    layer: str, source: str
) -> None:
    (broken,) = broken_imports(source, layer)
    assert broken.startswith(f"line {len(source.splitlines())}: ")


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("engine", "from sessiondb import __version__"),
        ("engine", "from sessiondb.schema.version import HEAD"),
        ("engine", "if TYPE_CHECKING:\n    from sessiondb.store import Store"),
        ("formats", "from sessiondb.formats import opencode"),
        ("formats", "READS = {'codex': 'sessiondb.formats.codex'}"),
        ("formats", "FILE = 'sessiondb.db'"),
        ("repository", "from sessiondb.model.paths import path_to"),
        ("aio", "from sessiondb.store import Store"),
        ("cli", "def f():\n    from sessiondb import Store"),
    ],
)
def test_an_import_with_the_flow_is_free(layer: str, source: str) -> None:
    assert broken_imports(source, layer) == []
