"""Anthropic's Messages API: its blocks of content, as Claude Code stores them, too.

`blocks` takes a block apart by the tables of `fields` and makes it again, `drafts` and
`messages` do so for the messages of the API.
"""
