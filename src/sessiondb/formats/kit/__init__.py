"""The building blocks of all formats, so that all keep the same limits.

`json` decodes records and says which ids and numbers can be stored, `files` reads
files and folders that may be unreadable, links or fifos, `walk` searches folders,
`lines` reads logs line by line, `packed` unpacks them, `logs` finds the sessions in
a folder of them, `sqlite` opens other programs' databases. `fields` moves values
between records and columns, `spelled` those with several spellings, `blocks` content
in typed blocks, `usage` counts that contain others; `texts` reads values that are
written as texts, `genai` is the content of Google's API, and `order` puts parents
first. `conversion`, `naming` and `turns` serve the writers. Whatever a file holds,
the only errors are `OddRecordError` and `SourceError`.
"""
