"""PostgreSQL: the engine for databases of a server. Needs the extra ``postgresql``."""
