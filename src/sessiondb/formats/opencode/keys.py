"""Keys of ``data`` that the reader of OpenCode adds to what OpenCode wrote.

They hold values that a column cannot hold exactly, or that lie beside a record. No
writer prints them as they are.
"""

from __future__ import annotations

# -- of a session ---------------------------------------------------------

#: Which generation its records are of, 2 or absent (1.x).
GENERATION = "generation"
#: The list of ``session_diff`` without what became `FileDiff`.
DIFF_REST = "session_diff"
#: A todo list that has more than its `Todo` lines.
TODO_REST = "todo"
#: The folder of its share, and whether only that file has the address.
SHARE_REST = "share_file"
#: Columns of its row that OpenCode does not know.
ROW_REST = "row"
#: Version 2: messages that wait to be sent, and the instructions of the session.
INBOX, PENDING, INSTRUCTIONS = "inbox", "pending", "instructions"

# -- of a part ------------------------------------------------------------

#: The file with the complete output of a call, as {"name", "content"}.
OUTPUT_FILE = "output_file"
#: That a call of version 2 has no time of its start.
NO_RAN = "unsaid"
#: That a text is what a compaction kept beside its summary.
RECENT = "recent"
#: In the state of a call: the lengths of its result's texts, and other pieces.
PIECES = "content"
