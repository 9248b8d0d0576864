"""The stores that are compared, and the releases of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Store:
    """A store of the comparison."""

    module: str  # its module in `benchmarks.peers`, and its name on the command line
    title: str
    packages: tuple[str, ...] = ()  # what pip installs; without any it needs none
    turns: int | None = (
        None  # fewer turns, for a store whose turn costs what all before it cost
    )
    quick: bool = False  # also in a quick run

    @property
    def release(self) -> str:
        """The package with its version, empty for a store without packages."""
        return self.packages[0].replace("==", " ") if self.packages else ""


# SQLAlchemy needs greenlet for its asyncio half, which these packages import.
OPENAI = ("openai-agents==0.24.0", "sqlalchemy", "aiosqlite", "greenlet")
ADK = ("google-adk==2.13.0",)
LANGGRAPH = ("langgraph-checkpoint-sqlite==3.1.2",)
LANGCHAIN = ("langchain-community==0.4.2", "greenlet")
AGNO = ("agno==3.1.10", "sqlalchemy", "greenlet")
STRANDS = ("strands-agents==1.62.0",)

RAW, BESIDE, OURS = "raw", "openai_sqlite", "ours"
STORES = (
    Store(RAW, "raw table, WAL, FULL", quick=True),
    Store("jsonl", "JSON lines, fsync", quick=True),
    Store(BESIDE, "OpenAI SQLiteSession", OPENAI, quick=True),
    Store("openai_advanced", "OpenAI AdvancedSQLiteSession", OPENAI),
    Store("openai_sqlalchemy", "OpenAI SQLAlchemySession", OPENAI),
    Store("google_adk", "ADK SqliteSessionService", ADK),
    Store("langgraph_saver", "LangGraph SqliteSaver", LANGGRAPH, turns=200),
    Store("langchain_history", "LangChain SQLChatMessageHistory", LANGCHAIN),
    Store("agno_db", "Agno SqliteDb", AGNO),
    Store("strands_files", "Strands FileSessionManager", STRANDS),
    Store(OURS, "sessiondb", quick=True),
)
