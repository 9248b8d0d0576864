"""Write the table of known prices from a file of models.dev or LiteLLM.

    python scripts/renew_prices.py --date 2026-07-02 SOURCE

SOURCE is a checkout of models.dev (https://github.com/anomalyco/models.dev), its
``api.json`` (https://models.dev/api.json), or LiteLLM's
``model_prices_and_context_window.json``. Only the makers' own prices are taken, of
models that read and write text. Nothing is loaded from the network: the file is fetched
by whoever renews the table, who then looks at what changed in it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parent.parent / "src" / "sessiondb" / "prices.json"
KINDS = ("input", "output", "reasoning", "cache_read", "cache_write")
#: Who sets the price of a model, as models.dev and LiteLLM call them.
MAKERS = {
    "alibaba", "anthropic", "deepseek", "google", "minimax", "mistral", "moonshotai",
    "openai", "xai", "zai",
}  # fmt: skip
LITELLM_MAKERS = {"gemini": "google", "moonshot": "moonshotai", "dashscope": "alibaba"}
LITELLM_KINDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "reasoning": "output_cost_per_reasoning_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}
_LITELLM_ABOVE = re.compile(r"_above_(\d+)k_tokens")
_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
Rates = dict[str, Any]


def main() -> int:
    """Write the table; 1 if there is no price in the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path, metavar="SOURCE")
    parser.add_argument("--date", required=True, type=date.fromisoformat)
    arguments = parser.parse_args()

    source, models = read_source(arguments.source)
    prices: dict[str, Rates] = {}
    for maker, name, rates in models:
        if maker in MAKERS and rates.get("input") is not None:
            prices[name.lower()] = rates
    if not prices:
        print(f"no prices in {arguments.source}", file=sys.stderr)
        return 1

    prices |= undated(prices)
    head = {"source": source, "date": arguments.date.isoformat()}
    TABLE.write_text(as_text(head, prices), encoding="utf-8")
    print(f"{len(prices)} models in {TABLE.name}; look at what changed: git diff")
    return 0


def read_source(path: Path) -> tuple[str, Iterator[tuple[str, str, Rates]]]:
    """Return what the file is, and its models: maker, name and rates."""
    if path.is_dir():
        return "https://models.dev", models_of_checkout(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    if "sample_spec" in content:
        return "https://github.com/BerriAI/litellm", models_of_litellm(content)
    return "https://models.dev", models_of_api(content)


def models_of_checkout(folder: Path) -> Iterator[tuple[str, str, Rates]]:
    """Yield the models of models.dev: a file for each, in a folder of its provider."""
    for file in sorted(folder.glob("providers/*/models/**/*.toml")):
        maker = file.relative_to(folder).parts[1]
        name = file.relative_to(folder / "providers" / maker / "models")
        model = tomllib.loads(file.read_text(encoding="utf-8"))
        yield maker, str(name.with_suffix("")), rates_of_models_dev(model)


def models_of_api(content: dict[str, Any]) -> Iterator[tuple[str, str, Rates]]:
    """Yield the same models from the one file of its API."""
    for maker, provider in content.items():
        for name, model in provider["models"].items():
            yield maker, name, rates_of_models_dev(model)


def rates_of_models_dev(model: dict[str, Any]) -> Rates:
    """Return the rates of a model that writes text; ``{}`` for any other."""
    # Some have the modalities of the model that they are based on.
    if "text" not in model.get("modalities", {}).get("output", ["text"]):
        return {}
    cost = model.get("cost", {})
    rates: Rates = {kind: cost[kind] for kind in KINDS if kind in cost}
    above = {}
    for tier in cost.get("tiers", []):
        size = tier.get("tier", {}).get("size")
        if size:
            above[size] = {kind: tier[kind] for kind in KINDS if kind in tier}
    if above:
        rates["above"] = above
    return rates


def models_of_litellm(content: dict[str, Any]) -> Iterator[tuple[str, str, Rates]]:
    """Yield the chat models of LiteLLM, whose keys may begin with the provider."""
    for key, model in content.items():
        if model.get("mode") not in ("chat", "responses"):
            continue
        maker = model.get("litellm_provider", "")
        name = key.rpartition("/")[2]
        yield LITELLM_MAKERS.get(maker, maker), name, rates_of_litellm(model)


def rates_of_litellm(model: dict[str, Any]) -> Rates:
    """Return the rates of a model, which LiteLLM has for one token."""
    rates: Rates = {}
    above: dict[int, Rates] = {}
    for kind, key in LITELLM_KINDS.items():
        for field, rate in model.items():
            if not isinstance(rate, int | float):
                continue
            if field == key:
                rates[kind] = per_million(rate)
            tier = _LITELLM_ABOVE.fullmatch(field.removeprefix(key))
            if field.startswith(key) and tier:
                above.setdefault(int(tier[1]) * 1000, {})[kind] = per_million(rate)
    if above:
        rates["above"] = above
    return rates


def per_million(rate: float) -> float:
    """Return a rate for one token as that of a million."""
    return round(rate * 1e6, 6)


def undated(prices: dict[str, Rates]) -> dict[str, Rates]:
    """Return the models that are listed by date alone, if all dates have one price."""
    by_name: dict[str, list[Rates]] = {}
    for name, rates in prices.items():
        if _DATE.search(name):
            by_name.setdefault(_DATE.sub("", name), []).append(rates)
    return {
        name: every[0]
        for name, every in by_name.items()
        if name not in prices and all(rates == every[0] for rates in every)
    }


def as_text(head: dict[str, str], prices: dict[str, Rates]) -> str:
    """Return the table with a line for each model, so that a change is a line."""
    fields = ",\n".join(f"{json.dumps(key)}: {json.dumps(head[key])}" for key in head)
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(prices[name])}" for name in sorted(prices)
    )
    return f'{{\n{fields},\n"prices": {{\n{lines}\n}}\n}}\n'


if __name__ == "__main__":
    sys.exit(main())
