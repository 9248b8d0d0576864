"""The list of offences that are above a cap today: none, and none may be added."""

#: To be removed, line by line.
TO_BE_REMOVED: list[str] = []
