"""What the sessions of a server searched and opened, as a retriever: `r2med serve --log-searches` kept it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from r2med.data import Dataset
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.stages import argument
from r2med.foundation.store import Store, digest
from r2med.systems.agents.agent_run import AgentRun
from r2med.systems.agents.agent_run_files import AgentRunFile, AgentRunFolder
from r2med.systems.agents.session_log import LoggedCall, SearchLog

LOGGED = "logged"
"""The status of a session. The log of a server has no answer."""


class ServedSessions(AgentRun):
    """Use what sessions of `r2med serve --log-searches` searched and opened.

    A session is named after its query: QUERY, or AGENT/QUERY.
    """

    name: str = "sessions"
    agent: str = argument("the name before the slash of the sessions; empty: those without a slash", default="")

    def read(self, dataset: Dataset, store: Store) -> AgentRunFolder:
        """Return the sessions about the queries of a dataset. Raises UserError if there are none."""
        known = {query.id for query in dataset.queries}
        calls: dict[str, list[LoggedCall]] = {}
        for each in SearchLog(store, dataset.label).calls():
            query = each.session.removeprefix(f"{self.agent}/") if self.agent else each.session
            if query in known and (not self.agent or query != each.session):
                calls.setdefault(query, []).append(each)
        if not calls:
            raise UserError(
                f"{self}: no session of a server is named after a query of {dataset.name}: start it with "
                "r2med serve --log-searches, and let the agent name its sessions"
            )
        return AgentRunFolder(tuple(_file(query, own, self.agent) for query, own in calls.items()))

    def files_key(self, dataset: Dataset, store: Store) -> str:
        """Return a digest of what was logged."""
        return digest([list(map(str, self.read(dataset, store).files))])

    def place(self, dataset: Dataset) -> str:
        """Return where the calls are kept, for messages."""
        return "the log of searches"


def _file(query: str, calls: Sequence[LoggedCall], agent: str) -> AgentRunFile:
    searched = [document for each in calls if each.call == "search" for document in each.documents]
    counts: dict[str, int] = {}
    for each in calls:
        counts[each.call] = counts.get(each.call, 0) + 1
    steps = tuple(map(_step, calls))
    return AgentRunFile(query, LOGGED, "", tuple(dict.fromkeys(searched)), counts, steps, agent)


def _step(call: LoggedCall) -> dict[str, Any]:
    if call.call == "search":
        output = json.dumps([{"docid": document} for document in call.documents])
        return {"type": "tool_call", "tool_name": "search", "arguments": {"query": call.query}, "output": output}
    return {"type": "tool_call", "tool_name": call.call, "arguments": {"docid": call.documents[0]}, "output": ""}
