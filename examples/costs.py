"""What did it cost? Stated costs, estimates from prices, and what nobody can know.

Run: python examples/costs.py [DATABASE]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from sessiondb import Store, UsageRow, assistant, user

#: USD per million tokens. Your own list: prices change, so none is built in.
PRICES = {"open-model": {"input": 0.5, "output": 1.5}}


def usd(cost: float | None) -> str:
    """Write a cost; unknown is not 0."""
    return "unknown" if cost is None else f"${cost:.4f}"


def show(rows: Iterable[UsageRow]) -> None:
    """Print a line for each group."""
    for row in rows:
        name = " ".join(str(value) for value in row.key.values())
        answers = "1 answer" if row.messages == 1 else f"{row.messages} answers"
        print(
            f"  {name}: {answers}, {usd(row.cost)} stated, "
            f"{usd(row.cost_estimated)} estimated, {row.tokens_unpriced} tokens without a price"
        )


def main(database: str) -> None:
    """Count a session, its fork, and the fork alone."""
    with Store.open(database, source="example-costs") as store:
        with store.effects() as fx:
            session = fx.create_session(title="Three models")
            fx.append(session, user("Compare the answers"))
            said = assistant("Stated by the provider.")
            fx.append(session, said, model="paid-model", cost=0.0125, tokens={"input": 4000})
            said = assistant("Tokens and a price.")
            tokens = {"input": 1000, "output": 200}
            fx.append(session, said, model="open-model", tokens=tokens)
            said = assistant("Tokens alone.")
            fx.append(session, said, model="local-model", tokens={"output": 300})
            fx.append(session, assistant("Nothing is known."), model="quiet-model")

        print("by model:")
        show(store.usage(by=("model",), source="example-costs", prices=PRICES))

        # A fork copies the messages; their cost stays where it was made.
        fork = store.session(store.fork(session))
        print(f"the fork: own {usd(fork.cost)}, inherited {usd(fork.cost_inherited)}")
        print("with the fork:")
        show(store.usage(by=("source",), source="example-costs", prices=PRICES))

        # Nothing is lost with the original: the fork counts from then on.
        store.delete(session, keep_forks=True)
        print("without the original:")
        show(store.usage(by=("source",), source="example-costs", prices=PRICES))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ":memory:")
