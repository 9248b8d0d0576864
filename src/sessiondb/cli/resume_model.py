"""The model with which `resume` continues a session in the program that has it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sessiondb.cli.around import origin_of
from sessiondb.cli.opening import rows_of
from sessiondb.dataclass import replace
from sessiondb.formats import registry

if TYPE_CHECKING:
    from sessiondb.cli.resume_plan import Plan
    from sessiondb.model import Session
    from sessiondb.store import Store

#: A provider or a model: no option, no place-holder such as ``<synthetic>``.
_MODEL = r"[A-Za-z0-9][^\s\x00-\x1f\x7f]*"
#: The models of the answers of a session.
_MODELS = """
SELECT DISTINCT provider_id, model_id FROM message
 WHERE session_id = :id AND role = 'assistant'
"""


def with_model(store: Store, plan: Plan) -> Plan:
    """Return *plan* with the session's model, if the program answered with it before.

    Another program may not have that model, or not by this name; nor does this one if
    the model is that of an answer that was added here.
    """
    session = plan.session
    origin = origin_of(store, session)
    options = registry.model_options().get(origin.source, "")
    commands = registry.resume_commands()
    is_own = plan.command[0] == commands.get(origin.source, "").partition(" ")[0]
    if not (options and is_own and _answered(store, origin, session)):
        return plan

    names = {"{provider}": session.provider_id, "{model}": session.model_id}
    words = options.split()
    for blank, name in names.items():
        if any(blank in option for option in words) and not _is_plain(name):
            return plan
        words = [option.replace(blank, name or "") for option in words]
    return replace(plan, command=[*plan.command, *words])


def _is_plain(name: str | None) -> bool:
    """Return whether a name from other people's files can be an argument."""
    return name is not None and re.fullmatch(_MODEL, name) is not None


def _answered(store: Store, origin: Session, session: Session) -> bool:
    """Return whether the program of *origin* had or used the model of *session*."""
    if origin.time_imported is None or origin.time_detached is not None:
        return False
    model = (session.provider_id, session.model_id)
    if model == (origin.provider_id, origin.model_id):
        return True
    return model in rows_of(store, _MODELS, id=origin.id)
