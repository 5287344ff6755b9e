"""Presets: names for whole pipelines. Each is a TOML file, and a user can replace its parts one by one.

reasoner(o3-mini)
reasoner(o3-mini, dense=nv, rerank=bge-reranker@100)
"""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.names import Catalogue
from r2med.foundation.core.spec import Call

DEEPEST = 100
"""Maximum number of replacements. A preset that needs more has a part that contains itself."""

_NAMED = re.compile(r"\{([a-z_]+)\}")


class Preset(BaseModel):
    """A pipeline: its spec, and the default value of each part."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The name of the preset. The default is the name of the file."""
    summary: str
    """What the pipeline does, in one sentence."""
    spec: str
    """The system, with `{NAME}` in the place of parts."""
    parts: dict[str, str]
    """Name -> part of a spec. A part may contain other parts, and `{llm}`, which the user gives."""

    def spelt_out(self, call: Call, llm: str = "") -> str:
        """Return the spec that replaces a call of this preset."""
        if len(call.arguments) > 1:
            raise UserError(f"{call}: give one LLM first, then parts as PART=VALUE: {', '.join(self.parts)}")
        if call.depth is not None:
            raise UserError(f"{call}: write the depth as depth={call.depth}")
        words = {**self.parts, **self._given(call)}
        words["llm"] = call.arguments[0] if call.arguments else llm
        text = self.spec
        for _ in range(DEEPEST):
            if (named := _NAMED.search(text)) is None:
                return text
            word = named[1]
            if word not in words:
                raise UserError(f"{call}: {self.name} has no part {{{word}}}: {', '.join(self.parts)}")
            if word == "llm" and not words["llm"]:
                raise UserError(
                    f"{self.name} needs the name of an LLM, such as {self.name}(o3-mini), or llm (--llm NAME)",
                )
            text = text.replace(named[0], words[word])
        raise UserError(f"{call}: a part of it contains itself")

    def _given(self, call: Call) -> dict[str, str]:
        for key, _ in call.settings:
            if key not in self.parts:
                raise unknown(f"part of {self.name}", key, self.parts)
        return dict(call.settings)


PRESETS = Catalogue("systems", Preset, "preset")
