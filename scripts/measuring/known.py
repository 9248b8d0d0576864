"""What is above a cap today."""

#: To be removed, line by line; none may be added.
TO_BE_REMOVED = """\
file effects/unit.py
heavy formats/discovery.py:_inside
heavy formats/jsonl/records.py:head
heavy formats/jsonl/records.py:message_records
heavy formats/jsonl/state.py:State._take_diffs
heavy formats/jsonl/state.py:_fields
heavy formats/jsonl/state.py:_rest
heavy formats/jsonl/values.py:plain
heavy maintenance/bundle.py:parents_first
heavy maintenance/removal.py:plan_prune
heavy maintenance/sync.py:_read
heavy maintenance/sync.py:_write
heavy repository/search.py:_newest
heavy repository/transcript.py:tail_path
wide .
wide cli
wide database
wide engine
wide engine/sqlite
wide formats
wide formats/jsonl
wide formats/kit
wide formats/opencode
wide importing
wide maintenance
wide model
wide repository
wide schema
circle cli/import_watch.py
circle engine/default.py
""".splitlines()
