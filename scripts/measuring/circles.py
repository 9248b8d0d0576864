"""Modules that import each other, directly or through others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from measuring.source import Source, imports


def circles(sources: Iterable[Source], package: str) -> list[list[str]]:
    """Return each group of modules that reach each other, sorted by name.

    The names of *sources* are relative to *package*, and so are those returned.
    """
    modules = {_module(source, package): source for source in sources}
    graph = {name: _targets(name, modules) for name in modules}
    reached = {name: _reachable(name, graph) for name in graph}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
    }
    return sorted(
        sorted(modules[name].name for name in group) for group in groups if group
    )


def _module(source: Source, package: str) -> str:
    parts = [package, *source.name.removesuffix(".py").split("/")]
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def _targets(name: str, modules: Mapping[str, Source]) -> set[str]:
    """Return the modules that *name* imports; its own package is not one of them."""
    targets = set()
    for _, imported in imports(modules[name].tree):
        targets |= {imported, imported.rpartition(".")[0]} & modules.keys()
    return {
        target
        for target in targets
        if target != name and not name.startswith(f"{target}.")
    }


def _reachable(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting.extend(new)
    return reached
