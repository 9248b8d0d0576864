"""The session stores of agent frameworks, each on a database of sessiondb.

A package for each framework, which needs the extra of its name: an adapter implements
the interface that the framework defines, and stores what people read as sessions and
messages. It finds a session by the pair of its framework and the framework's own id, so
equal ids of two frameworks in one file are two sessions.
"""
