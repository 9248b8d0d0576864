"""List prices of models, and the names under which programs know a model.

The table ships with the package, with its source and date; `scripts/renew_prices.py`
writes it from a file, and nothing here asks the network. A price is that of the
model's maker for each token. Only spellings of one name are taken for each other: with
or without provider, region and date. A model that is not listed has no price, however
similar its name is to that of another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Tokens
from sessiondb.patterns import late_pattern

#: USD per million tokens by model: the rate of each kind of token, and under ``above``
#: those of requests with a longer prompt, by the number of tokens that it is above.
Prices = Mapping[str, Mapping[str, Any]]

KINDS = Tokens.__slots__
#: Programs that run models on a machine of one's own, where tokens have no list price.
LOCAL = frozenset(
    {"ollama", "lmstudio", "llamacpp", "llama.cpp", "vllm", "local", "mlx"}
)
#: The key of the rates for long prompts.
ABOVE = "above"
_FILE = Path(__file__).with_name("prices.json")
#: ``us.anthropic.claude-sonnet-4-5-20250929-v1:0``: region, vendor, name and version.
_BEDROCK = late_pattern(
    r"(?:(?:us|eu|apac|au|jp|global)\.)?[a-z]+\.(?P<name>[a-z].*?)(?:-v\d+(?::\d+)?)?"
)
#: Vertex AI has ``@`` before the date.
_DATE = late_pattern(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$")


class PriceTable(NamedTuple):
    """The prices that ship: where they are from, their date, and by model."""

    source: str
    date: str
    prices: Prices


@cache
def known_prices() -> PriceTable:
    """Return the prices that ship with the package."""
    table = json.loads(_FILE.read_text(encoding="utf-8"))
    prices = {
        model: {**rates, ABOVE: {int(size): more for size, more in above.items()}}
        if (above := rates.get(ABOVE))
        else rates
        for model, rates in table["prices"].items()
    }
    return PriceTable(table["source"], table["date"], prices)


def names_of_model(model: str) -> Iterator[str]:
    """Yield the names under which the price of a model may be listed, its own first."""
    yield model

    provider, _, name = model.lower().rpartition("/")
    if provider.partition("/")[0] in LOCAL:
        return
    on_bedrock = _BEDROCK.fullmatch(name)
    if on_bedrock:
        name = on_bedrock["name"]
    # Anthropic writes a version with a dash, OpenRouter and Copilot with a dot.
    if name.startswith("claude-"):
        name = name.replace(".", "-")
    yield name
    yield _DATE.sub("", name)


def layered(first: Prices, *others: Prices) -> dict[str, Mapping[str, Any]]:
    """Return the prices of *first*, and those of *others* for models it has none for.

    A model that *first* names in another spelling is not taken from the others.
    """
    merged = dict(first)
    for layer in others:
        for model, rates in layer.items():
            if not any(name in merged for name in names_of_model(model)):
                merged[model] = rates
    return merged


class Rates:
    """Checked prices, asked by model."""

    def __init__(self, prices: Prices) -> None:
        """Raises `InvalidInputError` for anything but rates by model and kind."""
        if not isinstance(prices, Mapping):
            raise InvalidInputError(f"prices are by model, not {abridged(prices)}")

        self._by_model = {
            model: _checked_rates(model, rates) for model, rates in prices.items()
        }

    @property
    def sizes(self) -> tuple[int, ...]:
        """The lengths of prompts from which a model has other rates, in order."""
        every = (rates.get(ABOVE, {}) for rates in self._by_model.values())
        return tuple(sorted({size for by_size in every for size in by_size}))

    def depends_on_size(self, model: str) -> bool:
        """Return whether a model has other rates for long prompts."""
        for name in names_of_model(model):
            if name in self._by_model:
                return bool(self._by_model[name].get(ABOVE))
        return False

    def of_model(self, model: str | None, size: int) -> Mapping[str, float]:
        """Return the rates of a model for prompts of more than *size* tokens.

        Without a price it is ``{}``.
        """
        for name in names_of_model(model) if model else ():
            rates = self._by_model.get(name)
            if rates is not None:
                passed = [each for each in rates.get(ABOVE, {}) if each <= size]
                return rates[ABOVE][max(passed)] if passed else rates
        return {}


def _checked_rates(model: str, rates: Any) -> dict[str, Any]:
    """Return the rates of a model by kind of token; raises `InvalidInputError`.

    Reasoning has the rate of the output unless it has one of its own: that is what
    providers bill.
    """
    if not isinstance(rates, Mapping):
        raise InvalidInputError(
            f"the prices of {abridged(model)} are by kind of token, "
            f"not {abridged(rates)}"
        )

    checked: dict[str, Any] = {}
    for name, rate in rates.items():
        if name == ABOVE and isinstance(rate, Mapping):
            checked[ABOVE] = {
                size: _checked_rates(model, more) for size, more in rate.items()
            }
            continue
        if name not in KINDS:
            raise InvalidInputError(
                f"no kind of token {abridged(name)} in the prices of "
                f"{abridged(model)}; the kinds are {', '.join(KINDS)}"
            )
        # Of the type itself: a bool is an int too. NaN is on neither side of a number.
        if type(rate) not in (int, float) or not 0 <= rate < math.inf:
            raise InvalidInputError(
                f"the price of {name} of {abridged(model)} is a number of USD per "
                f"million tokens, 0 or more, not {abridged(rate)}"
            )
        checked[name] = rate

    if "output" in checked:
        checked.setdefault("reasoning", checked["output"])
    return checked
