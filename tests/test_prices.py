"""The list prices that ship, and which names mean the same model."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sessiondb import Store, assistant
from sessiondb.prices import Rates, known_prices, layered, names_of_model

ROOT = Path(__file__).resolve().parent.parent
SONNET = {"input": 3.0, "output": 15.0}
LISTED = {"claude-sonnet-4-5": SONNET, "gpt-5.2": {"input": 1.75, "output": 14.0}}


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5@20250929",
        "anthropic/claude-sonnet-4-5", "openrouter/anthropic/claude-sonnet-4.5",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "global.anthropic.claude-sonnet-4-5-v1", "Claude-Sonnet-4-5",
    ],
)  # fmt: skip
def test_spellings_of_a_name_have_its_price(name: str) -> None:
    assert Rates(LISTED).of_model(name, 0)["input"] == SONNET["input"]


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4", "claude-sonnet-4-6", "claude-sonnet-4-5-thinking-x",
        "gpt-5.2-codex", "gpt-5", "gpt-5.2:free", "my-gpt-5.2", "ollama/gpt-5.2", "", None,
    ],
)  # fmt: skip
def test_a_similar_name_has_no_price(name: str | None) -> None:
    assert Rates(LISTED).of_model(name, 0) == {}


def test_every_model_of_the_table_has_rates_and_is_found_by_its_name() -> None:
    table = known_prices()
    assert date.fromisoformat(table.date)
    rates = Rates(table.prices)
    for name in table.prices:
        assert rates.of_model(name, 0)["input"] >= 0
        assert name in names_of_model(name.upper()), "names are in lower case"


def test_a_price_of_ones_own_counts_for_every_spelling_of_its_model() -> None:
    mine = {"claude-sonnet-4-5": {"input": 1.0}}
    listed = {"claude-sonnet-4-5-20250929": SONNET, **LISTED}
    rates = Rates(layered(mine, listed))
    for name in ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"):
        assert rates.of_model(name, 0) == {"input": 1.0}
    assert rates.of_model("gpt-5.2", 0)["output"] == 14.0


def test_long_requests_have_their_own_rates(store: Store) -> None:
    prices = {"m": {"input": 1.0, "above": {1000: {"input": 2.0, "cache_read": 0.5}}}}
    session = store.create_session()
    for tokens in ({"input": 1000}, {"input": 400, "cache_read": 800}):
        store.append(session, assistant("a"), model="m", tokens=tokens)
    (row,) = store.usage(by=(), prices=prices)
    assert row.cost_estimated == pytest.approx((1000 + 400 * 2 + 800 * 0.5) / 1e6)


def test_costs_are_estimated_by_the_table_unless_prices_are_given(store: Store) -> None:
    session = store.create_session()
    tokens = {"input": 1_000_000, "output": 100_000}
    store.append(session, assistant("a"), model="claude-sonnet-4-5", tokens=tokens)
    (row,) = store.usage(by=())
    assert (row.cost, row.cost_estimated) == (None, pytest.approx(3.0 + 1.5))
    (row,) = store.usage(by=(), prices={})
    assert (row.cost_estimated, row.tokens_unpriced) == (None, 1_100_000)


def renewed(tmp_path: Path, source: Path) -> Any:
    """Return the table that the script makes in a copy of its place."""
    script = tmp_path / "scripts" / "renew_prices.py"
    script.parent.mkdir()
    script.write_bytes((ROOT / "scripts" / "renew_prices.py").read_bytes())
    table = tmp_path / "src" / "sessiondb" / "prices.json"
    table.parent.mkdir(parents=True)
    command = [sys.executable, str(script), "--date", "2026-01-02", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(table.read_text()) if done.returncode == 0 else done.stderr


MODEL = {
    "modalities": {"output": ["text"]},
    "cost": {
        "input": 3, "output": 15, "cache_read": 0.3,
        "tiers": [{"tier": {"size": 200_000}, "input": 6, "output": 22.5}],
    },
}  # fmt: skip


def test_the_table_is_made_of_the_makers_prices_in_the_api_of_models_dev(
    tmp_path: Path,
) -> None:
    source = tmp_path / "api.json"
    picture = {"modalities": {"output": ["image"]}, "cost": {"input": 1}}
    source.write_text(json.dumps({
        "anthropic": {"models": {"Claude-X-20260101": MODEL, "claude-picture": picture}},
        "reseller": {"models": {"claude-x": {"cost": {"input": 99}}}},
    }))  # fmt: skip
    rates = {
        "input": 3, "output": 15, "cache_read": 0.3,
        "above": {"200000": {"input": 6, "output": 22.5}},
    }  # fmt: skip
    assert renewed(tmp_path, source) == {
        "source": "https://models.dev",
        "date": "2026-01-02",
        "prices": {"claude-x": rates, "claude-x-20260101": rates},
    }


def test_the_table_is_made_of_the_prices_of_litellm(tmp_path: Path) -> None:
    source = tmp_path / "prices.json"
    source.write_text(json.dumps({
        "sample_spec": {},
        "gemini/gemini-x": {
            "litellm_provider": "gemini", "mode": "chat", "input_cost_per_token": 1.25e-6,
            "output_cost_per_token": 1e-5, "input_cost_per_token_above_200k_tokens": 2.5e-6,
        },
        "azure/gpt-x": {"litellm_provider": "azure", "mode": "chat", "input_cost_per_token": 1},
    }))  # fmt: skip
    assert renewed(tmp_path, source)["prices"] == {
        "gemini-x": {"input": 1.25, "output": 10.0, "above": {"200000": {"input": 2.5}}}
    }


def test_a_file_without_prices_changes_nothing(tmp_path: Path) -> None:
    source = tmp_path / "api.json"
    source.write_text("{}")
    assert "no prices in" in renewed(tmp_path, source)
