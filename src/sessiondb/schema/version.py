"""The numbers that identify a database: program, schema, releases that may use it."""

#: The mark of our files: "SDB1" in ASCII.
APPLICATION_ID = 0x53444231

#: The version of the schema, written into every file.
VERSION = 1
#: The alembic revision of `VERSION`.
HEAD = "0001"
#: The oldest releases that may read and write a file of `VERSION`.
MIN_READER = "0.1.0"
MIN_WRITER = "0.1.0"
