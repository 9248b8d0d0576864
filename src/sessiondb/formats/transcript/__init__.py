"""A session as people read it: one model of what is shown, and the looks that show it.

`composer` turns a message into a `TranscriptEntry` of `blocks`; `calls`, `changes` and
`pictures` do so for the parts that need more. `session` makes a transcript of one
session, `families` puts transcripts into files. A look (markdown, html, `terminal`)
only writes blocks down, and makes them harmless.
"""
