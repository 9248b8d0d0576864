"""Values by namespace and key, as a shell reads and breaks them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from facades import Contract

from sessiondb import Store
from sessiondb.errors import CorruptionError


async def test_a_shell_reads_names_and_values_as_json(contract: Contract) -> None:
    await contract.store.set_value(("users", 'a "b"', "Ä"), "k", {"name": "Ada"})
    assert contract.rows(
        "SELECT namespace, json_extract(namespace, '$[1]'), value ->> 'name' "
        "FROM key_value"
    ) == [('["users","a \\"b\\"","Ä"]', 'a "b"', "Ada")]


def test_a_value_that_a_shell_broke_is_reported_with_its_address(
    store: Store,
) -> None:
    store.set_value("a", "k", 1)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE key_value SET value = '{'")
    with pytest.raises(CorruptionError, match=r"'k' of \[\"a\"\]"):
        store.value("a", "k")
    with pytest.raises(CorruptionError, match=r"'k' of \[\"a\"\]"):
        store.update_value("a", "k", lambda present: present)
