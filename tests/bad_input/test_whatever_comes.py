"""A property: the store returns any text, data and input exactly as an agent wrote them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessiondb import Store, assistant, text, tool, user

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(
        tmp_path_factory.mktemp("values") / "sessions.db", durability="normal"
    ) as opened:
        yield opened


_texts = st.text(
    st.characters(codec=None, exclude_categories=()), max_size=400
) | st.sampled_from(
    [
        "\0",
        "a\0b" * 500,
        "\ud800",
        "caf\udce9" * 500,
        "\ufeffBOM",
        "\u2028",
        "a\r\nb",
        "\x1b[31m",
    ]
)
_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | _texts
)
_plain = st.recursive(
    _scalars | st.binary(max_size=50),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4)
    ),
    max_leaves=12,
)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(
    max_examples=120,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    st.tuples(_texts, _texts),
    st.dictionaries(_texts.map("_{}".format), _plain, max_size=3),
    _json,
)
def test_written_values_are_read_back_exactly(
    store: Store, said: tuple[str, str], data: dict[str, Any], given_to_it: Any
) -> None:
    words, output = said
    session = store.create_session()
    store.append(session, user(text(words, **data), **data))
    call = store.append(session, assistant(tool("sh", given_to_it))).parts[0]
    store.settle(session, call, output=output, **data)
    prompt, called = store.messages(session)
    assert prompt.parts[0].text == words
    assert dict(prompt.data) == data
    assert {k: v for k, v in prompt.parts[0].data.items() if k in data} == data
    assert called.parts[0].text == output
    assert called.parts[0].input == given_to_it
    with closing(sqlite3.connect(str(store.path))) as connection:
        rows = connection.execute(
            "SELECT text, input FROM transcript WHERE session_id = ?", (session.id,)
        ).fetchall()
    for shown in (cell for row in rows for cell in row if cell is not None):
        assert "\0" not in shown
