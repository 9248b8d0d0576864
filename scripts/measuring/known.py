"""The list of offences that are above a cap today."""

#: To be removed, line by line; none may be added.
TO_BE_REMOVED = """\
heavy repository/search.py:_newest
file repository/sessions.py
heavy repository/transcript.py:tail_path
wide .
wide database
wide engine/sqlite
wide formats
wide formats/jsonl
wide formats/kit
wide formats/transcript
wide maintenance
wide model
wide repository
wide schema
circle engine/default.py
""".splitlines()
