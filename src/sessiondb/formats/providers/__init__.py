"""The messages of the APIs of providers, in both directions.

`responses` has the items of OpenAI's Responses API, `chat` the messages of its Chat
Completions, `anthropic` those of the Messages API. Each maps what an API takes and
returns to drafts, and messages to what it takes.

A part holds what has no column under the name of its API, in ``data`` (`Rest`), so that
the same API gets it back, and no other one does: providers refuse keys they do not
know. `conversation` puts calls and results in the order that all of them accept.
"""
