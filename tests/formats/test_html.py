from __future__ import annotations

import base64
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import PNG, TAGS, XSS, exported, nasty, read_html, story

from sessiondb import FileDiff, Store, assistant, file, text, tool, user
from sessiondb.formats import exporter
from sessiondb.formats.html.prose import prose
from sessiondb.model import Document, Loss

DETAILS = ["brief", "normal", "full"]
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages of a session that means harm, by level of detail."""
    with Store.open(
        tmp_path_factory.mktemp("hostile") / "s.db", durability="normal"
    ) as store:
        name = nasty(store)
        return {level: exported(store, "html", name, detail=level) for level in DETAILS}


@pytest.mark.slow
@pytest.mark.parametrize("detail", DETAILS)
def test_a_page_is_only_what_we_wrote_whatever_was_said(
    hostile: dict[str, str], detail: str
) -> None:
    found = read_html(hostile[detail])
    assert {tag for tag, _ in found.seen} <= TAGS
    for tag, attributes in found.seen:
        assert not [
            name for name in attributes if name.startswith("on") or name == "style"
        ]
        for name in ("src", "href", "action", "data", "srcset", "background", "poster"):
            value = attributes.get(name)
            if value is not None:
                assert (tag, name) in {("a", "href"), ("img", "src")}
                assert re.match(r"https?://|mailto:|#s1-m\d+$", value), value
                if not value.startswith("#"):
                    assert attributes["rel"] == "noopener noreferrer"
    ids = [attributes["id"] for _, attributes in found.seen if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_a_page_requests_nothing(store: Store, hostile: dict[str, str]) -> None:
    assert [
        meta for meta in read_html(hostile["brief"]).of("meta") if "http-equiv" in meta
    ]
    page = exported(store, "html", story(store))
    found = read_html(page)
    rules = [meta["content"] for meta in found.of("meta") if "http-equiv" in meta]
    assert len(rules) == 1
    assert str(rules[0]).startswith(POLICY)
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    for image in found.of("img"):
        assert str(image["src"]).startswith("data:image/png;base64,")


def test_characters_that_hide_or_reorder_text_are_shown_as_escapes(
    hostile: dict[str, str],
) -> None:
    page = hostile["normal"]
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e\u2066-\u2069\ud800-\udfff]", page
    )
    said = read_html(page).text
    assert all(
        shown in said
        for shown in (r"\x1b[31mred", r"\u202eevil", r"\ud83d", "漢字", "שלום")
    )


def test_all_that_was_said_is_there_in_full(hostile: dict[str, str]) -> None:
    said = read_html(hostile["full"]).text
    assert said.count("yes <b>yyy") == 12_500
    assert said.count("deeper") >= 5
    assert XSS[0] in said


PIECES = [
    *XSS[:12],
    "`",
    "```",
    "\n",
    "- ",
    "> ",
    "|",
    "[",
    "](",
    ")",
    "<b>",
    "*",
    "&lt;",
    "\ud83d",
]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
def test_arbitrary_prose_never_becomes_unsafe_markup(said: str) -> None:
    found = read_html(prose(said))
    assert {tag for tag, _ in found.seen} <= TAGS - {"img", "style", "meta"}
    assert all(
        re.match(r"https?:|mailto:", str(a.get("href", "https:")))
        for a in found.of("a")
    )


@pytest.mark.parametrize(
    ("said", "link"),
    [
        ("[x](javascript:alert(1))", None),
        ("[x](JAVASCRIPT&colon;alert(1))", None),
        ("[x](data:text/html,y)", None),
        ("[x](file:///etc/passwd)", None),
        ("[x](//evil.example)", None),
        ("[x](src/lexer.py)", None),
        ("[x](https://ok.example/?a=1&b=2)", "https://ok.example/?a=1&b=2"),
        ("![x](https://ok.example/p.png)", "https://ok.example/p.png"),
        ("[x](mailto:ada@ok.example)", "mailto:ada@ok.example"),
    ],
)
def test_links_go_to_the_web_or_to_mail(said: str, link: str | None) -> None:
    found = read_html(prose(said))
    hrefs = [a["href"] for a in found.of("a") if "href" in a]
    assert hrefs == ([] if link is None else [link])
    assert found.of("img") == []


def test_brief_normal_and_full_show_more_and_more(store: Store) -> None:
    name = story(store)
    brief, normal, full = (
        read_html(exported(store, "html", name, detail=detail)).text
        for detail in ("brief", "normal", "full")
    )
    for said in (brief, normal, full):
        assert all(
            part in said
            for part in ("Fix ", "Fixed the ", "pytest", "exit 3", "failed")
        )
    assert not any(
        part in brief for part in ("exclusive", "look first", "line 1", "about the")
    )
    assert all(
        part in normal
        for part in ("exclusive", "look first", "line 40\n… 960 more lines")
    )
    assert "line 1000" not in normal
    assert "line 1000" in full
    assert "left out" not in full


def test_a_page_begins_with_the_facts(store: Store) -> None:
    name = story(store)
    store.append(name, user("Once more"), time=None)
    page = read_html(exported(store, "html", name))
    facts = re.sub(r"\s+", " ", page.text)
    assert "Fix the *parser*" in facts
    assert "Cost $0.25" in facts
    assert "Tokens 100 in, 20 out" in facts
    assert "5 messages, 2 prompts, 4 tool calls (1 failed)" in facts
    free = store.create_session(title="Free")
    store.append(free, user("hello"))
    assert "Cost unknown" in re.sub(
        r"\s+", " ", read_html(exported(store, "html", free.id)).text
    )


def test_many_prompts_have_a_table(store: Store) -> None:
    name = store.create_session(title="Long").id
    for number in range(5):
        store.append(name, user(f"Prompt number {number}"))
    page = read_html(exported(store, "html", name))
    anchors = {attributes["id"] for _, attributes in page.seen if "id" in attributes}
    links = [str(a["href"]) for a in page.of("a") if str(a["href"]).startswith("#")]
    assert len(page.of("nav")) == 1
    assert {link[1:] for link in links} <= anchors


def test_diffs_and_code_are_coloured(store: Store) -> None:
    page = exported(store, "html", story(store))
    assert '<span class="dd">-a &lt;= b</span>' in page
    assert '<span class="di">+a &lt; b</span>' in page
    assert '<span class="k">def</span>' in page
    assert "+1 −1" in page


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"file_path": "a.py", "old_string": "x", "new_string": "y"}, {}),
        ({"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}, {}),
        (
            {"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": "y"},
            {},
        ),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch", {}),
        (
            {"input": "*** Begin Patch\n*** Update File: a.py\n-x\n+y\n*** End Patch"},
            {},
        ),
        (
            {"command": ["apply_patch", "*** Begin Patch\n@@\n-x\n+y\n*** End Patch"]},
            {},
        ),
        (
            {"path": "a.py"},
            {"details": {"diff": "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\n+y\n"}},
        ),
    ],
)
def test_an_edit_is_a_diff_whoever_made_it(
    store: Store, given: object, kept: dict[str, object]
) -> None:
    name = store.create_session().id
    store.append(name, assistant(tool("edit", given, output="ok", **kept)))
    page = exported(store, "html", name)
    assert '<span class="dd">-x</span>' in page
    assert '<span class="di">+y</span>' in page


def test_images_of_harmless_kinds_are_inside_and_others_are_named(store: Store) -> None:
    name = store.create_session().id
    encoded = base64.b64encode(PNG).decode()
    store.append(name, user(
        file(mime="image/png", content=PNG, filename="a.png"),
        file(f"data:image/png;base64,{encoded}", mime="image/png", filename="b.png"),
        file(mime="image/svg+xml", content=b"<svg/>", filename="c.svg"),
        file(mime="image/png", content=b"<svg/>", filename="d.png"),
        file("https://evil.example/e.png", mime="image/png"),
    ))  # fmt: skip
    result = {"content": [{"type": "image", "data": encoded, "mimeType": "image/png"}]}
    store.append(name, assistant(tool("look", {}, output="", result=result)))
    page = read_html(exported(store, "html", name))
    assert [image["src"] for image in page.of("img")] == [
        f"data:image/png;base64,{encoded}"
    ] * 3
    assert page.text.count("is not in this page") == 3


def test_omitted_content_is_reported(store: Store) -> None:
    name = store.create_session().id
    first = store.append(name, user("one"))
    store.append(name, user("another way"))
    store.set_leaf(name, first)
    store.append(
        name, user(file(mime="image/svg+xml", content=b"<svg/>", filename="c.svg"))
    )
    found = []
    to = exporter("html")
    for item in to.write([store.export(name, **to.read)], detail="normal"):
        if isinstance(item, Loss):
            found.append(item.why)
        else:
            assert "".join(item.chunks)
    assert found == [
        "1 message off the live path",
        "the image c.svg (image/svg+xml, 6 B)",
    ]


def test_a_subagent_is_shown_at_its_call(store: Store) -> None:
    name = store.create_session(title="Ask").id
    asked = store.append(
        name, assistant(tool("task", {"prompt": "count"}, call_id="t1", output="3"))
    )
    store.append(name, assistant(text("There are three.")))
    helper = store.create_session(
        title="Count them",
        parent=name,
        parent_message=asked,
        call_id="t1",
        relation="subagent",
    ).id
    store.append(helper, user("count"), time=None)
    store.append(helper, assistant("One, two, three."), cost=0.5)
    fork = store.fork(name, title="Another way").id
    page = exported(store, "html", name, helper, fork, together=True)
    read_html(page)
    assert (
        page.index("count")
        < page.index("One, two, three.")
        < page.index("There are three.")
    )
    assert page.index("There are three.") < page.index("Another way")
    assert "$0.50 of subagents" in page
    to = exporter("html")
    exports = (store.export(item, **to.read) for item in (name, helper, fork))
    made = to.write(exports, detail="brief")
    names = [
        item.name for item in made if isinstance(item, Document) and list(item.chunks)
    ]
    assert [item.rpartition("-")[2] for item in names] == [
        f"{name[-6:].lower()}.html", f"{fork[-6:].lower()}.html", "index.html",
    ]  # fmt: skip


def test_the_same_session_is_the_same_page(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = story(store)
    first = exported(store, "html", name)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "C")
    assert exported(store, "html", name) == first


def test_secrets_can_be_taken_out(store: Store) -> None:
    secret = "ghp_" + "a1" * 18
    name = store.create_session(title=secret).id
    store.append(name, user(f"use {secret}"))
    store.append(
        name, assistant(tool("bash", {"command": f"TOKEN={secret} x"}, output=secret))
    )
    store.set_diffs(
        name, [FileDiff("a", 0, f"--- a\n+++ a\n@@ -1 +1 @@\n-x\n+{secret}\n", 1, 1)]
    )
    store.label(name, 1, secret)
    fork = store.fork(name, title="of a secret").id
    for form in ("html", "markdown"):
        for session in (name, fork):
            assert secret in exported(store, form, session, detail="full")
            assert secret not in exported(
                store, form, session, detail="full", redact=True
            )


@pytest.mark.slow
def test_without_the_extra_it_says_what_is_missing(store: Store) -> None:
    program = (
        "import sys; sys.modules['markdown_it'] = None\n"
        "from sessiondb.errors import MissingExtraError\n"
        "from sessiondb.formats import exporter\n"
        "try: list(exporter('html').write([], detail='normal'))\n"
        "except MissingExtraError as error: print(error, error.hint, sep='\\n')\n"
        "print(list(exporter('markdown').write([], detail='normal')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == [
        "HTML needs markdown-it-py and Pygments",
        "`pip install 'sessiondb[html]'` installs them",
        "[]",
    ]  # fmt: skip
