"""html: a transcript to send, one file that needs nothing else (write only).

No script, no request to any server, and nothing in a transcript is taken as markup:
`text` escapes, `prose` renders Markdown without HTML, `code` colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessiondb.errors import MissingExtraError
from sessiondb.formats.protocol import Exporter
from sessiondb.formats.transcript.detail import DETAILS
from sessiondb.formats.transcript.families import transcript_documents
from sessiondb.model import Document, Export, Loss

__all__ = ["EXPORTER"]


def write(
    sessions: Iterable[Export], *, detail: str = "normal", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a page for each session that is not nested, *together* one for all.

    Raises `MissingExtraError` without the extra ``html``.
    """
    try:
        from sessiondb.formats.html.page import HtmlPage
    except ImportError as error:
        raise MissingExtraError(
            "HTML needs markdown-it-py and Pygments",
            hint="`pip install 'sessiondb[html]'` installs them",
        ) from error
    yield from transcript_documents(sessions, HtmlPage(), detail, together)


EXPORTER = Exporter(write, together=True, details=DETAILS, shows_cost=True)
