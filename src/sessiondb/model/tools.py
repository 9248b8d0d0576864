"""Kinds of tools: the names that agents give to what is the same tool.

Names are compared without regard to case. They are those of Claude Code, Codex, Gemini
CLI, Qwen Code, Goose, OpenCode, pi, oh-my-pi, Cline, Cursor and the OpenAI and
Anthropic tool definitions.
"""

from __future__ import annotations

from collections.abc import Mapping

#: The kind of a tool → its names in lower case, the kind among them.
TOOL_KINDS: Mapping[str, tuple[str, ...]] = {
    "edit": (
        "edit", "write", "replace", "apply_patch", "multiedit", "notebookedit", "patch",
        "write_file", "edit_file", "create_file", "write_to_file", "replace_in_file",
        "search_replace", "str_replace", "str_replace_editor", "text_editor",
        "str_replace_based_edit_tool", "insert_edit_into_file",
    ),
    "shell": (
        "shell", "bash", "exec", "exec_command", "run_shell_command", "local_shell",
        "local_shell_call", "run_command", "execute_command", "run_terminal_cmd",
        "run_in_terminal", "powershell", "terminal",
    ),
    "read": (
        "read", "read_file", "read_many_files", "view", "view_image", "notebookread",
    ),
    "find": (
        "find", "grep", "glob", "ls", "grep_search", "list_directory", "list_dir",
        "list_files", "search_file_content", "search_files", "codebase_search",
        "file_search",
    ),
    "task": ("task", "agent", "subagent", "spawn_agent"),
    "todo": (
        "todo", "todowrite", "write_todos", "todo_write", "todo__todo_write",
        "update_plan",
    ),
}  # fmt: skip


def names_of_tool(name: str) -> tuple[str, ...]:
    """Return the names, in lower case, that *name* means: a kind's, or itself."""
    return TOOL_KINDS.get(name.lower(), (name.lower(),))
