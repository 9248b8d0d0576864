"""A secret that is named, or has the shape of an issued one, is nowhere in an export."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib import import_module
from typing import Any
from urllib.parse import quote_plus, unquote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import new_store

from sessiondb import Store, assistant, reasoning, text, tool, user
from sessiondb.formats import exporter, jsonl
from sessiondb.formats.redact import IDS_AND_WORDS, PLACE, Redaction, start_of
from sessiondb.formats.registry import writable
from sessiondb.formats.secrets import (
    find_secrets,
    is_distinctive,
    substitute_secrets,
)
from sessiondb.model import (
    Document,
    FileDiff,
    Label,
    Loss,
    Message,
    Part,
    Project,
    Prompt,
    Session,
    Todo,
)
from sessiondb.model.versions import Version

#: Examples of each property in a long run.
MANY = 200 if os.environ.get("SESSIONDB_LONG") else 0
SECRET = "ghp_" + "a1" * 18
#: How a text names its secret, {} in its place.
NAMING = [
    "credentials: password = {}", "DB_PASS={}", "export PGPASSWORD={};", "PASS: {}",
    "curl -u user:{} https://db.example", "curl --user user:{}", "mysql -u root -p{} db",
    "mysqldump --password {} db", "machine host\n  login me\n  password {}\n",
    "tool --api-key '{}' --dry-run", "tool --token={}", "sshpass -p {} ssh host",
    "redis-cli -h host -a {}", "docker login -u me -p {}", "token: Bearer {}",
    "Authorization: Basic {}", "postgres://me:{}@db.example/x", "redis://:{}@db.example",
    "ALTER USER joe WITH PASSWORD '{}'", "<password>{}</password>", "the password is {}",
    'dbPass = "{}"', "config['password'] = '{}'", '{{"api_key": "{}"}}',
    '{{\\"client_secret\\": \\"{}\\"}}', "?access_token={}&page=2", "set_password('{}')",
    "secret_key_base:\n  {}", "AWS_SECRET_ACCESS_KEY={}", "password := {}", "x-api-key: {}",
]  # fmt: skip


def cleaned(value: str) -> str:
    return substitute_secrets(value, PLACE, lambda *_: None, [])


@pytest.mark.parametrize("naming", NAMING)
def test_a_named_value_is_removed_and_its_name_stays(naming: str) -> None:
    name, _, after = naming.format("hunter22x").partition("hunter22x")
    assert cleaned(f"{name}hunter22x{after}").startswith(f"{name}{PLACE}")


@pytest.mark.parametrize(
    ("head", "end"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"),
        ("-----BEGIN PRIVATE KEY-----", ""),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----END PGP PRIVATE KEY BLOCK-----"),
        ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----", ""),
        ("PuTTY-User-Key-File-2: ssh-rsa", ""),
    ],
)  # fmt: skip
def test_a_private_key_is_removed_also_if_it_is_cut_off(head: str, end: str) -> None:
    assert cleaned(f"see\n{head}\nMIIEow\nIBAAKC\n{end}") == f"see\n{PLACE}"


@pytest.mark.parametrize(
    "plain",
    [
        "tokens: 12345", "token_count=4096", "password: string", "passing tests: 5 of 6",
        "secret: null", "the tokenizer = fast", "the key to it: patience", "-u user", "-pv",
        "https://docs.example/a:b", "it costs 12:30 or so", "bypass: the wall",
        "<total_tokens>15000000 tokens left</total_tokens>", "> Tokens: 2.4k sent, 31 received.",
        "edits, basic instructions", "Basic authentication. Then", "max_tokens = 4,096",
    ],
)  # fmt: skip
def test_what_only_resembles_a_secret_stays(plain: str) -> None:
    assert cleaned(plain) == plain


def rules_of_a_maintained_set() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the shapes that detect-secrets knows, by the name of their service."""
    services = (
        "artifactory aws azure_storage_key basic_auth discord github_token gitlab_token "
        "mailchimp npm openai pypi_token sendgrid slack square_oauth stripe "
        "telegram_token twilio"  # not jwt: its shape is any text with a dot
    )
    for service in services.split():
        module = import_module(f"detect_secrets.plugins.{service}")
        for plugin in vars(module).values():
            is_its_own = getattr(plugin, "__module__", "") == module.__name__
            if is_its_own and hasattr(plugin, "denylist"):
                for number, pattern in enumerate(plugin.denylist):
                    yield f"{service} {number}", pattern


RULES = dict(rules_of_a_maintained_set())


def test_every_service_of_the_maintained_set_is_compared() -> None:
    assert len(RULES) >= 22, list(RULES)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_each_shape_of_a_maintained_set_is_removed(rule: str) -> None:
    signs = st.characters(min_codepoint=33, max_codepoint=126)
    secrets = st.from_regex(RULES[rule], fullmatch=True, alphabet=signs)

    # Some patterns also match short texts, which are no secrets.
    @given(secrets.filter(lambda secret: len(secret) >= 20))
    @settings(max_examples=MANY or 15, deadline=None, derandomize=not MANY)
    def is_removed(secret: str) -> None:
        # A text around it, as it has in a session.
        text = cleaned(f'key "{secret}" end')
        assert not RULES[rule].search(text), (secret, text)

    is_removed()


def test_a_long_text_is_searched_in_a_time_that_grows_with_its_length() -> None:
    for piece in (
        "password",
        "password = ",
        "sk-a-",
        "eyJ",
        "://a",
        "-u a",
        "token-\\",
    ):
        text = piece * 4_000
        steps = sum(1 for _ in find_secrets(text))
        assert steps <= 4_000


RECORDS = (Session, Project, Message, Part, FileDiff, Label, Todo, Prompt)
NUMBERS = ("int", "bool", "float", "Tokens")


@pytest.mark.parametrize("record", RECORDS, ids=lambda of: of.__name__)
def test_each_column_is_cleaned_unless_it_is_an_id_or_a_word(record: type) -> None:
    exempt = {of.name for of in fields(record)} & IDS_AND_WORDS
    for name in exempt:
        assert name.endswith(("id", "key", "commit")) or name in {
            "namespace", "relation", "role", "kind", "type", "status", "finish", "vcs",
            "title_source", "model_source", "source", "usage_name",
        }, name  # fmt: skip


def everywhere(store: Store, secret: str, naming: str) -> str:
    """Make a session that names *secret* once, and has it in every kind of place."""
    top = store.create_session(title=f"About {secret}", metadata={"note": [secret]}).id
    prompt = store.append(top, user(f"first {secret}, then"))
    store.append(top, user(naming.format(secret)))
    call = tool(
        "sh", {"deep": [{"cmd": f"echo {secret}", secret: 1}]}, output=f"> {secret}\n",
        title=f"echo {secret}",
    )  # fmt: skip
    store.append(
        top,
        assistant(
            reasoning(f"I see {secret}"), call, text(f"done: {secret}"), note=secret
        ),
        error={"message": f"refused {secret}"},
    )
    store.label(top, prompt.id, f"with {secret}"[:60])
    store.set_todos(top, [f"forget {secret}"])
    store.set_diffs(top, [FileDiff("a.env", before=b"", after=f"X {secret}".encode())])
    store.add_prompt(f"again {secret}", session=top)
    return top


def exported(store: Store, session: str, form: str, redaction: Redaction | None) -> str:
    target = exporter(form)
    export = store.export(session, **target.read)
    if redaction is not None:
        redaction.learn(store.export(session, **target.read))
        export = redaction.redact(export)
    documents = target.write([export], detail=target.details[-1])
    return "".join(
        part if isinstance(part, str) else part.decode()
        for document in documents
        if isinstance(document, Document) or not isinstance(document, Loss)
        for part in (document.name, *document.chunks)
    )


#: As people choose and generate them: letters and digits, and signs that need no escape.
VALUES = st.from_regex(r"[a-z][0-9][A-Za-z0-9_.!%+~^-]{6,20}[a-z0-9]", fullmatch=True)


@pytest.mark.slow
@pytest.mark.parametrize("form", writable())
@given(secret=VALUES, naming=st.sampled_from(NAMING))
@example(secret="hunter22x", naming=NAMING[0])
@settings(max_examples=MANY or 2, deadline=None)
def test_a_named_secret_survives_nowhere_in_an_export(
    form: str, secret: str, naming: str
) -> None:
    with new_store() as store:
        session = everywhere(store, secret, naming)
        assert secret in exported(store, session, form, None)
        assert secret not in exported(store, session, form, Redaction())


#: Any signs that can be typed, also those that JSON, pages, shells and addresses escape.
SIGNS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x17F, exclude_categories=["Cc"]),
    min_size=8,
    max_size=20,
).filter(lambda value: is_distinctive(value) and value not in PLACE)


def readings(output: str) -> Iterator[str]:
    """Yield an output as it is, and as a reader of JSON, a page or an address sees it."""
    yield output
    yield html.unescape(output)
    yield unquote_plus(output)
    for _ in range(2):
        output = re.sub(
            r"\\(u[0-9a-f]{4}|.)",
            lambda escaped: (
                chr(int(escaped[1][1:], 16)) if len(escaped[1]) > 1 else escaped[1]
            ),
            output,
        )
        yield output


@pytest.mark.slow
@pytest.mark.parametrize("form", writable())
@given(secret=SIGNS)
@example(secret='pa"ss\\wo<r>d&1')
@settings(max_examples=MANY or 2, deadline=None)
def test_a_secret_with_any_signs_survives_in_no_spelling(
    form: str, secret: str
) -> None:
    with new_store() as store:
        session = everywhere(store, secret, "it is {}")
        call = tool("login", {"password": secret}, output=json.dumps({"said": secret}))
        again = text(f"see https://db.example/?q={quote_plus(secret)}")
        store.append(session, assistant(call, again, text(html.escape(secret))))
        clean = exported(store, session, form, Redaction())
        assert not any(secret in reading for reading in readings(clean))


#: How a text names a secret that is a word, and is not a variable of a program.
LITERAL = [
    "DB_PASS={}", 'password: "{}"', "{{'password': '{}'}}", "curl -u me:{} host",
    "mysql -p{} db", "--password {}", "machine h login me password {}",
    "postgres://me:{}@db.example/x", "<password>{}</password>",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("naming", LITERAL)
@given(
    secret=st.one_of(
        st.from_regex("[A-Za-z]{8,14}", fullmatch=True),
        st.from_regex("[0-9]{8,14}", fullmatch=True),
    )
)
@settings(max_examples=MANY or 2, deadline=None)
def test_a_password_that_is_a_word_survives_nowhere_as_a_word(
    naming: str, secret: str
) -> None:
    with new_store() as store:
        session = everywhere(store, secret, naming)
        assert secret not in exported(store, session, "jsonl", Redaction())


def test_a_name_in_a_program_stays_elsewhere() -> None:
    redaction = Redaction()
    with new_store() as store:
        session = store.create_session()
        store.append(session, user("password = response; token = parser"))
        store.append(session, user("the response of the parser"))
        redaction.learn(store.export(session))
        export = redaction.redact(store.export(session))
        _, second = export.messages
    assert second.parts[0].text == "the response of the parser"


def test_a_redacted_log_keeps_nothing_for_a_merge() -> None:
    with new_store() as store:
        session = store.create_session()
        prompt = store.append(session, user("password = hunter22x"))
        store.label(session, prompt.id, "hunter22x")
        export = replace(
            store.export(session), base={"label/hunter22x": Version(1, 1, "digest")}
        )
        redaction = Redaction()
        redaction.learn(export)
        again = replace(store.export(session), base=export.base)
        assert redaction.redact(again).base == {}


def test_a_secret_that_one_session_names_is_removed_from_the_others() -> None:
    redaction = Redaction()
    with new_store() as store:
        one = store.create_session(title="one")
        store.append(one, user("the output was hunter22x"))
        other = store.create_session(title="other")
        store.append(other, user("DB_PASS=hunter22x"))
        for session in (one, other):
            redaction.learn(store.export(session))
        for session in (one, other):
            clean = "".join(
                jsonl.session_lines(redaction.redact(store.export(session)))
            )
            assert "hunter22x" not in clean
            assert PLACE in clean


def test_nothing_of_an_export_keeps_an_issued_secret() -> None:
    redaction = Redaction()
    with new_store() as store:
        top = everywhere(store, SECRET, "use {}")
        plain = list(jsonl.session_lines(store.export(top, **jsonl.READ)))
        clean = list(
            jsonl.session_lines(redaction.redact(store.export(top, **jsonl.READ)))
        )

    assert sum(SECRET in line for line in plain) >= 7
    assert not any(SECRET in line for line in clean)
    assert sum(PLACE in line for line in clean) == sum(SECRET in line for line in plain)


def test_the_report_says_what_was_removed_and_where() -> None:
    redaction = Redaction()
    with new_store() as store:
        top = store.create_session(title=f"With {SECRET}").id
        store.append(top, user(f"{SECRET} and {SECRET}"))
        store.append(top, user("password = hunter22x"))
        store.append(top, user("so hunter22x it is"))
        for export in (store.export(top), store.export(top)):
            redaction.learn(export)
        list(redaction.redact(store.export(top)).messages)
    report = {
        item.kind: (item.count, item.seqs, item.fields, item.starts)
        for item in redaction.report()
    }
    assert report == {
        "GitHub token": (3, (1,), ("title",), ("ghp_…",)),
        "named secret": (1, (2,), (), ("hun…",)),
        "repeated secret": (1, (3,), (), ("hun…",)),
    }


@given(st.text(min_size=1, max_size=60))
def test_the_first_characters_in_a_report_are_a_third_at_most(secret: str) -> None:
    start = start_of(secret).removesuffix("…")
    assert secret.startswith(start)
    assert len(start) <= min(4, len(secret) / 3)


@pytest.mark.parametrize(
    ("key", "value", "stays"),
    [
        ("password", "hunter22x", False),
        ("password", 12345678, False),
        ("passwords", ["hunter22x"], False),
        ("api_key", "abcd", False),
        ("max_tokens", 4096, True),
        ("tokens", {"input": 123456}, True),
        ("token", None, True),
    ],
)
def test_a_key_of_data_names_its_value(key: str, value: Any, stays: bool) -> None:
    with new_store() as store:
        top = store.create_session()
        store.append(top, assistant(tool("login", {key: value}), note={key: value}))
        export = Redaction().redact(store.export(top))
        (message,) = export.messages
    assert (message.data["note"] == {key: value}) is stays
    assert (message.parts[0].input == {key: value}) is stays
