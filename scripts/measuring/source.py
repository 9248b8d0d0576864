"""The load of one file of Python on its reader.

A branch is a place where the reader keeps two cases in mind: an ``if``, a loop, an
``except``, a ``case``, a conditional expression, a comprehension, and each further
operand of ``and`` and ``or``. A hidden one is written as something else, and is harder
to read than the branch that it replaces: a ``filter``, a ``next``, a dictionary that is
called, ``any`` of a tuple, ``|=`` of a condition. A docstring counts as neither length
nor branch.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef

DECISIONS = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.comprehension,
    ast.match_case,
)
#: Functions whose call decides or repeats without an ``if`` or a loop.
HIDING = frozenset(
    "map filter starmap filterfalse takewhile dropwhile reduce compress groupby product "
    "zip_longest chain from_iterable accumulate partial attrgetter itemgetter "
    "methodcaller next".split()
)
#: Operators of a container or a number, used as a function.
OPERATOR = re.compile(r"__(contains|getitem|gt|lt|ge|le|eq|ne)__")
#: Names that say nothing of the value that they are given to.
VAGUE = frozenset(
    "found known given said made own ours theirs stated named kept held told here there "
    "them rest what where how why of at by to into above below beside before "
    "after".split()
)
#: Functions that import the module named by their argument.
IMPORTERS = ("import_module", "__import__")
#: Comments for tools, which say nothing to a reader.
DIRECTIVE = re.compile(r"#\s*(noqa|fmt|type|ruff|pragma|!)")
WIDTH = 88


@dataclass(frozen=True)
class Function:
    """A function or method; one inside another belongs to both."""

    name: str
    line: int
    lines: int
    blank: int
    branches: int
    hidden: int

    @property
    def words(self) -> int:
        """Count the words of its name."""
        return len(self.name.rpartition(".")[2].strip("_").split("_"))


@dataclass(frozen=True)
class Source:
    """A file, with *name* as it is reported."""

    name: str
    text: str

    @classmethod
    def read(cls, file: Path, root: Path) -> Source:
        """Read *file*, to be reported relative to *root*."""
        return cls(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))

    @property
    def folder(self) -> str:
        """The directory, ``.`` for a file of the root."""
        return self.name.rpartition("/")[0] or "."

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return self.text.splitlines()

    @cached_property
    def functions(self) -> list[Function]:
        """Every function and method, in the order of the file."""
        return [self._measured(name, node) for name, node in definitions(self.tree)]

    @property
    def wide(self) -> int:
        """Count the lines of more than 88 columns."""
        return sum(len(line) > WIDTH for line in self.lines)

    @cached_property
    def vague(self) -> int:
        """Count the assigned names and parameters that say nothing."""
        return sum(
            (isinstance(node, ast.arg) and node.arg in VAGUE)
            or (
                isinstance(node, ast.Name)
                and isinstance(node.ctx, ast.Store)
                and node.id in VAGUE
            )
            for node in ast.walk(self.tree)
        )

    @cached_property
    def uses(self) -> Counter[str]:
        """Count how often each name is read."""
        return Counter(
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Attribute)
            or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        )

    @property
    def comments(self) -> int:
        """Count the lines with a comment for a reader."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return sum(
            token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string)
            for token in tokens
        )

    def _measured(self, name: str, node: Definition) -> Function:
        first = _first_line(node)
        body = self.lines[first - 1 : node.end_lineno]
        return Function(
            name=name,
            line=node.lineno,
            lines=len(body),
            blank=sum(not line.strip() for line in body),
            branches=branches(node),
            hidden=sum(is_hidden(each) for each in ast.walk(node)),
        )


def definitions(node: ast.AST, within: str = "") -> Iterator[tuple[str, Definition]]:
    """Yield each function below *node* with its qualified name, as in ``Class.method``."""
    for child in ast.iter_child_nodes(node):
        name = within
        if isinstance(child, Definition | ast.ClassDef):
            name = f"{within}.{child.name}".lstrip(".")
        if isinstance(child, Definition):
            yield name, child
        yield from definitions(child, name)


def branches(node: ast.AST) -> int:
    """Count the branches of *node* and of everything in it."""
    count = 0
    for each in ast.walk(node):
        count += isinstance(each, DECISIONS)
        if isinstance(each, ast.BoolOp):
            count += len(each.values) - 1
    return count


def is_hidden(node: ast.AST) -> bool:
    """Return whether *node* is a decision that is not spelled as one."""
    if isinstance(node, ast.Attribute):
        return OPERATOR.fullmatch(node.attr) is not None
    if isinstance(node, ast.AugAssign):
        adds_to_a_flag = isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.Add)
        return adds_to_a_flag and isinstance(node.value, ast.Compare | ast.BoolOp)
    if not isinstance(node, ast.Call):
        return False

    called = _called(node)
    if called in ("any", "all"):
        return bool(node.args) and isinstance(
            node.args[0], ast.Tuple | ast.List | ast.Name
        )
    is_table = isinstance(node.func, ast.Call) and _called(node.func) == "get"
    # That of itertools chooses; that of zlib does not.
    is_of_zlib = ast.unparse(node.func) == "zlib.compress"
    return is_table or (called in HIDING and not is_of_zlib)


def imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import that can run.

    ``from a import b`` is ``a.b``. An import inside a function counts like one at the
    top; what is under ``if TYPE_CHECKING`` never runs.
    """
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        children = iter(node.orelse)
    else:
        yield from _imported(node)

    for child in children:
        yield from imports(child)


def _imported(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield node.lineno, f"{node.module}.{alias.name}"
    elif isinstance(node, ast.Call) and _called(node) in IMPORTERS:
        for argument in node.args:
            if isinstance(argument, ast.Constant):
                yield node.lineno, str(argument.value)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _first_line(node: Definition) -> int:
    """Return the line after the docstring, or that of the first statement."""
    first = node.body[0]
    if ast.get_docstring(node) is None:
        return first.lineno
    return (first.end_lineno or first.lineno) + 1
