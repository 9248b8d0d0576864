"""OpenAI's Responses API: its items, as a program and the Agents SDK have them.

`drafts` takes an item or a response apart by the tables of `fields`, `items` makes
items of messages again, or of messages of any other origin.
"""
