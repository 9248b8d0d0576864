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
heavy formats/opencode/v2/writer.py:_event_fields
heavy maintenance/bundle.py:parents_first
heavy maintenance/removal.py:plan_prune
heavy maintenance/sync.py:_read
heavy maintenance/sync.py:_write
heavy repository/context.py:_cut
heavy repository/context.py:context_of
heavy repository/results.py:with_results
heavy repository/search.py:_newest
heavy repository/sessions.py:Filters.conditions
heavy repository/transcript.py:tail_path
heavy repository/transcript.py:load
heavy repository/usage.py:_row
wide .
wide cli
wide database
wide effects
wide effects/imports
wide engine
wide engine/sqlite
wide formats
wide formats/jsonl
wide formats/kit
wide formats/opencode/v1
wide importing
wide maintenance
wide model
wide repository
wide schema
wide streaming
wide writer
circle cli/import_watch.py
circle engine/default.py
""".splitlines()
