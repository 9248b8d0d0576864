"""What readers of every format are built from, so that all keep the same limits.

`json` decodes records and says which ids and numbers can be stored, `files` reads
files and folders that may be unreadable, links or fifos, `lines` reads logs line by
line, `packed` unpacks them, `sqlite` opens other programs' databases. `fields` moves
values between records and columns, `texts` reads values that are written as texts,
`order` puts parents first, `conversion` and `naming` serve the writers. Whatever a
file holds, the only errors are `OddRecordError` and `SourceError`.
"""
