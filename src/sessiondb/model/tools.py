"""Tools as agents name them: what is the same kind, and which files a call changes.

Names are compared without regard to case. They are those of Claude Code, Codex, Gemini
CLI, Qwen Code, Goose, OpenCode, pi, oh-my-pi, Cline, Cursor and the OpenAI and
Anthropic tool definitions. A file that a shell command writes is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sessiondb.patterns import late_pattern

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


#: Where the calls of agents name their file.
PATH_KEYS = (
    "filePath", "file_path", "path", "notebook_path", "absolute_path", "file",
    "filename", "target_file",
)  # fmt: skip
#: A line of a patch of Codex: https://github.com/openai/codex, apply_patch.
_PATCHED = late_pattern(
    r"^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+)$", re.MULTILINE
)
_PATCH_BEGIN = "*** Begin Patch"
#: The new name in a unified diff.
_DIFFED = late_pattern(r"^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
#: An edit block of aider: the file is on the line before its fence.
_EDIT_BLOCK = late_pattern(r"^(.+)\n(?:`{3,}|~{3,}).*\n<{5,9} SEARCH", re.MULTILINE)


def files_changed(tool: str | None, arguments: Any, text: str | None) -> Iterator[str]:
    """Yield the files that a call, or the text of an answer, changes, as it names them.

    *arguments* are those of the call as plain data. Without a *tool* the *text* is that
    of an answer, in which aider writes its edits.
    """
    if tool is None:
        for match in _EDIT_BLOCK.finditer(text or ""):
            yield match[1].strip("*`#: ")
        return

    is_edit = tool.lower() in TOOL_KINDS["edit"]
    if is_edit and isinstance(arguments, dict):
        for key in PATH_KEYS:
            if isinstance(arguments.get(key), str):
                yield arguments[key]
                break

    for value in _strings_in(arguments):
        # A patch may also be the input of a shell command.
        if _PATCH_BEGIN in value:
            yield from _PATCHED.findall(value)
        elif is_edit and value.startswith(("---", "diff ")):
            yield from _DIFFED.findall(value)


def _strings_in(value: Any, depth: int = 3) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings_in(item, depth - 1)
