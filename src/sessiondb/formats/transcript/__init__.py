"""A session as something to be read by people: what is shown of it, in no format yet.

`families` puts sessions into files, `session` makes a transcript of one, `message`,
`calls`, `changes` and `pictures` its `blocks`. A format only writes these down.
"""

from sessiondb.formats.transcript.families import documents, spooled
from sessiondb.formats.transcript.session import Transcript

#: How much is shown; the first is the default.
DETAILS = ("normal", "brief", "full")

__all__ = ["DETAILS", "Transcript", "documents", "spooled"]
