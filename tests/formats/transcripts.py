"""A session that means harm, the writers as the command line calls them, and a strict reader."""

from __future__ import annotations

import base64
from html.parser import HTMLParser

from sessiondb import Store, assistant, event, file, reasoning, system, text, tool, user
from sessiondb.formats import exporter
from sessiondb.formats.redact import Redaction
from sessiondb.model import Document, FileDiff, Loss, Todo

XSS = [
    "<script>alert(1)</script>", "</details></section></article><h1>mine</h1>",
    "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "<style>*{display:none}</style>",
    '"><iframe src="https://evil.example"></iframe>', "<!-- <a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1)) [y](java&#115;cript:alert(1)) [z](data:text/html,<b>) ",
    "![pixel](https://evil.example/p.png) [![in](https://evil.example/q.png)](https://ok.example)",
    "<https://auto.example> <javascript:alert(2)> [r]\n\n[r]: javascript:alert(3)",
    "[ok](https://ok.example/?a=1&b=\"2\" 'a \" title') [mail](mailto:a@b.example)",
    "`` <b>code</b> `` `<i>` ``` <u>", "    <b>indented</b>", "&lt;script&gt;&#60;b&#62;",
    "````\n```\n<b>inside</b>\n```\nnever closed </details>",
    "- a\n  ```html\n  <b>in a list</b>\n", "> ```\n> <b>in a quote</b>\n<b>lazy</b>",
    "Fake\n===\n\n## Prompt · 2026-01-01\n\nUnder\n---\n", "| a |\n|---|\n| <b> `|<i>|` |",
    "\x1b[31mred\x1b[0m \u202eevil\u2066 \x00 \x85 \u2028 \ud83d lone 漢字 👩‍👩‍👧‍👦 שלום مرحبا",
    "- " * 200 + "deep", "> " * 500 + "deeper", "[" * 600 + "`" * 99 + "*" * 600, "\r\rraw returns\r\n",
]  # fmt: skip
#: Tags that a page may hold; any other would come from the session's text.
TAGS = set(
    "html head meta title style body main article header section nav footer h1 h2 h3 h4 h5 h6 "
    "dl dt dd div p span strong em s a ul ol li blockquote hr br pre code table thead tbody tr th "
    "td details summary time figure figcaption img".split()
)
VOID = {"meta", "hr", "br", "img", "input"}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


class Strict(HTMLParser):
    """Reads HTML; every tag must be closed by its own, in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.said.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data[:80]}")

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.seen if name == tag]

    @property
    def text(self) -> str:
        return "".join(self.said)


def read_html(page: str) -> Strict:
    strict = Strict()
    strict.feed(page)
    strict.close()
    assert strict.open == []
    return strict


def nasty(store: Store) -> str:
    """Write every harmful text into every possible field; return the session's id."""
    session = store.create_session(
        title=XSS[0] + " [t](javascript:x) `\u202e` " + XSS[1], id="s<b>\"'&"
    )
    with store.effects() as fx:
        for number, bad in enumerate(XSS):
            fx.append(
                session,
                user(
                    text(bad),
                    file("https://evil.example/x.png", mime="image/png", filename=bad),
                ),
            )
            call = tool(
                bad[:200], {"command": bad, "path": bad, "n": number, bad[:50]: [bad]}, call_id=f"c{number}",
                output=bad, title=bad[:300] if number % 2 else None,
            )  # fmt: skip
            edit = tool(
                "edit",
                {"filePath": bad, "oldString": bad, "newString": bad + "\nnew"},
                output="ok",
            )
            fx.append(
                session,
                assistant(reasoning(bad), text(bad), call, edit),
                model=bad[:99],
                agent="a<b>",
            )
            fx.append(
                session,
                event(("compaction", "odd<b>", "context")[number % 3], text(bad)),
            )
        fx.append(session, system(text("\n".join(XSS))))
        fx.append(
            session,
            assistant(tool("bash", {"command": "make"}, error=XSS[2])),
            error={"message": XSS[0]},
        )
        fx.append(
            session,
            assistant(
                tool("bash", {"command": "yes"}, output=f"yes <b>{'y' * 72}\n" * 12_500)
            ),
        )
        fx.append(
            session,
            user(
                text("word <b> " * 20_000),
                file(mime="image/svg+xml", content=b"<svg onload=x>", filename="x.svg"),
            ),
        )
        fx.set_todos(session, [Todo(XSS[1], "in<b>")])
        fx.set_diffs(
            session,
            [FileDiff(XSS[2], 0, "--- a\n+++ b\n@@ -1 +1 @@\n-<b>\n+</pre>\n", 1, 1)],
        )
        fx.label(session, 1, "l<b>")
    return session.id


def story(store: Store) -> str:
    """A session as one would send it: three calls, one of which failed, and an image."""
    session = store.create_session(title="Fix the *parser*")
    store.append(
        session,
        user(
            text("Fix `lexer.py`"),
            file(mime="image/png", content=PNG, filename="shot.png"),
        ),
    )
    store.append(session, assistant(
        reasoning("The bound is exclusive."), text("I look first."),
        tool("bash", {"command": "pytest"}, call_id="a", output="\n".join(f"line {n}" for n in range(1, 1001)), exit=3),
        tool("read", {"path": "gone.py"}, call_id="b", error="no such file"),
    ), model="large", cost=0.25, tokens={"input": 100, "output": 20})  # fmt: skip
    store.append(session, assistant(
        tool("edit", {"filePath": "lexer.py", "oldString": "a <= b", "newString": "a < b"}, call_id="c", output="ok"),
        tool("todowrite", {"todos": [{"content": "Run it", "status": "in_progress"}]}, output="[]"),
        text("Fixed the **bound**.\n\n```python\ndef f():\n    return 1\n```"),
    ), model="large")  # fmt: skip
    store.append(session, event("compaction", text("It was about the parser.")))
    return session.id


def exported(store: Store, form: str, *ids: str, **how: object) -> str:
    """Return the writer's output for sessions, as one file, and check its chunks."""
    return "".join(
        chunk
        for document in _documents(store, form, ids, how)
        for chunk in document.chunks
    )


def _documents(
    store: Store, form: str, ids: tuple[str, ...], how: dict[str, object]
) -> list[Document]:
    to = exporter(form)
    clean = Redaction().redact if how.pop("redact", False) else lambda export: export
    exports = (clean(store.export(name, **to.read)) for name in ids)
    made = []
    for item in to.write(exports, **{"detail": to.details[0], **how}):  # type: ignore[arg-type]
        if isinstance(item, Loss):
            continue
        chunks = list(item.chunks)
        assert max(map(len, chunks)) < 4_000_000
        made.append(Document(item.name, chunks))
    return made
