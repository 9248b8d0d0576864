"""Go back to an earlier message and try something else, without losing anything.

Run: python examples/fork.py [DATABASE]
"""

from __future__ import annotations

import sys

from sessiondb import Store, Tree, assistant, text, tool, user


def draw(tree: Tree, indent: str = "  ") -> None:
    """Print a family."""
    one = tree.session
    print(f"{indent}{one.title} ({one.message_count} messages, own cost ${one.cost})")
    for child in tree.children:
        draw(child, indent + "  ")


def main(database: str) -> None:
    """Fork, compare, count and delete."""
    with Store.open(database, source="example-fork") as store:
        # One unit: all of it is written, or nothing.
        with store.effects() as fx:
            session = fx.create_session(title="Speed up the parser")
            fx.append(session, user("Make the parser faster"))
            plan = fx.append(session, assistant("Two ways: a cache, or C."), model="m", cost=0.01)
            fx.append(session, user("Take the cache"))
            edit = tool("edit", {"path": "parser.py"}, output="ok")
            fx.append(session, assistant(text("Cached."), edit), model="m", cost=0.02)
            fx.label(session, plan, "two ways")

        # The fork ends with the plan. It copies rows, shares blobs and counts nothing twice.
        fork = store.fork(session, at=plan)
        store.append(fork, user("Take C"))
        store.append(fork, assistant("Rewritten in C."), model="m", cost=0.04)
        print("the family:")
        draw(store.tree(fork))

        both = store.compare(session, fork)
        print("in common:", [message.text for message in both.common])
        print("only the original:", [message.text for message in both.only_a])
        print("only the fork:", [message.text for message in both.only_b])

        (total,) = store.usage(by=("source",), source="example-fork")
        print(f"what it cost: ${total.cost:.2f} for {total.messages} answers")

        # A delete says first what it would take along.
        going = store.plan_delete(session, keep_forks=True)
        print("to delete:", [item.title for item in going.sessions])
        print("to keep:", [item.title for item in going.detached])
        store.delete(session, keep_forks=True)
        print("the fork is complete:", [message.text for message in store.messages(fork)])
        print(f"and carries its cost now: ${store.session(fork).cost:.2f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ":memory:")
