"""The rules of an agent with tools: from the calls of a turn to results, messages and the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from r2med.foundation.text.citation_marks import cited_numbers
from r2med.models.llm.chat import Failure, Message, RawAnswer, ToolCall
from r2med.models.llm.costs import approximate_tokens
from r2med.models.prompts.fitting import first_words, fit
from r2med.models.prompts.templates import Template
from r2med.systems.agents.agent_state import (
    SHOWN_WORDS,
    AgentTurn,
    Answered,
    AwaitModel,
    AwaitSearch,
    Chosen,
    Conversation,
    Hit,
    not_done,
)
from r2med.systems.agents.sources import title_and_text
from r2med.systems.agents.tools import (
    ANSWERING_TOOLS,
    RANKING_TOOLS,
    BadCall,
    Status,
    ToolName,
    arguments_of,
    confidence_of,
    ids_of,
    label,
    parsed,
    plain_citations,
    search_of,
    stop_tags,
    tagged_call,
    tool_of,
)

RESULT_TOKENS = 16_384
"""Maximum number of tokens of the results of one turn. In a small context it is a quarter of the context."""
MAX_IDLE_TURNS = 3
"""Number of turns in a row without a call after which a conversation ends. The model may have no tool calls at all."""

CONTINUE = "No tool was called. Go on with a search, or finish with the ids of the relevant passages."
CUT = "The last message was too long and was cut before a tool was called. Be brief: search or finish."
LAST_TURN = "This is the last turn: finish now with the ids of the relevant passages."
NO_ROOM = "There is no room for more passages. Finish now with the ids of the relevant passages."
MAX_TURN_CALLS = 64
"""Number of calls of one turn that are carried out. The others are dropped, as if they had not been made."""
MAX_PLACES, PLACE_WORDS = 8, 40
"""Number of places that `find` shows, and of words on each side."""
NOTHING_FOUND = "Nothing was found for this query."
REPEATED = "This query was searched before: see the earlier result."
NOTED = "Noted."


@dataclass(frozen=True)
class Wording:
    """The messages that name the tool which ends the task."""

    no_call: str = CONTINUE
    cut: str = CUT
    last_turn: str = LAST_TURN
    no_room: str = NO_ROOM
    searched_enough: str = "Finish with what was found."


ANSWER_WORDING = Wording(
    "No tool was called. Go on with a search, or give the answer with the tool answer.",
    "The last message was too long and was cut before a tool was called. Be brief: search or answer.",
    "This is the last turn: give the answer now, with the tool answer.",
    "There is no room for more passages. Give the answer now, with the tool answer.",
    "Answer with what was found.",
)


@dataclass(frozen=True)
class ToolRules:
    """The rules of the conversation. Documents are numbered in the order in which the model first sees them.

    So the model sees no id of the dataset, which may say where a document is from.
    """

    template: Template
    how: str
    """How the tools are called, for the prompt."""
    native: bool = True
    """True if the server has tool calls. Otherwise calls are tags in the text, and results are messages of the user."""
    turns: int = 20
    searches: int = 20
    topk: int = 10
    room: int = RESULT_TOKENS
    """Maximum number of tokens of the results of one turn."""
    answers: bool = False
    """True if the conversation ends with an answer to the question, and not only with documents."""

    @property
    def tools(self) -> tuple[ToolName, ...]:
        """The tools that the model has."""
        return ANSWERING_TOOLS if self.answers else RANKING_TOOLS

    @property
    def wording(self) -> Wording:
        """The messages to the model."""
        return ANSWER_WORDING if self.answers else Wording()

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn of the model."""
        return () if self.native else stop_tags(self.tools)

    def start(self, question: str) -> Conversation:
        """Return the conversation before its first turn."""
        prompt = self.template.render({"query": question, "calls": self.how})
        return Conversation((Message("user", prompt),), search_off=self.turns == 1)

    def on_completion(self, conversation: Conversation, completion: RawAnswer) -> Conversation:
        """Return the conversation after the calls of a turn, up to the first one that has to search."""
        text, calls = self._calls(conversation, completion)
        first = _printed(calls[0]) if calls and self.native else ""
        turn = AgentTurn("\n".join(filter(None, (text, first)))).plus(completion)
        said = Message("assistant", _spoken(text), calls) if self.native else Message("assistant", text)
        after = replace(conversation, parts=(*conversation.parts, said), turns=(*conversation.turns, turn))
        if failure := None if calls else not_done(completion):
            return after.waiting_for(failure)
        if not calls:
            return self._without_call(after, completion.finish_reason == "length")
        return self._carry_out(replace(after, pending=calls))

    def on_documents(self, conversation: Conversation, documents: tuple[Hit, ...]) -> Conversation:
        """Return the conversation with the documents shown, and after the other calls of the turn."""
        count = conversation.state.k if isinstance(conversation.state, AwaitSearch) else self.topk
        text, cut = self._listed(conversation, documents[:count])
        ids = tuple(hit.id for hit in documents[:count])
        shown = conversation.with_last_turn(documents=documents[:count], cut=cut, shown=ids)
        return self._carry_out(self._answered(shown, "ok", text, information=text))

    def on_overflow(self, conversation: Conversation) -> Conversation:
        """Return the conversation without the last results, called for the last time, or its end."""
        if conversation.shortened:
            return conversation.waiting_for(
                Failure("context_length", "the transcript does not fit the model's context")
            )
        last = max((i for i, part in enumerate(conversation.parts) if part.role == "assistant"), default=0)
        notice = self.wording.no_room
        results = [replace(part, content=notice) for part in conversation.parts[last + 1 :]]
        changed = conversation.with_last_turn(status="no_room", notice=notice, information="")
        parts = (*conversation.parts[: last + 1], *results)
        first = max((i for i, turn in enumerate(changed.turns) if not turn.further), default=0)
        unseen = (replace(turn, shown=(), opened=()) for turn in changed.turns[first:])
        turns = (*changed.turns[:first], *unseen)  # all results of the last turn were taken back
        return replace(changed, parts=parts, turns=turns, state=AwaitModel(), search_off=True, shortened=True)

    def _calls(self, conversation: Conversation, completion: RawAnswer) -> tuple[str, tuple[ToolCall, ...]]:
        """Return the text of a turn and its calls, with ids of our own.

        The ids of servers are random, so that no request would be asked twice alike. Mistral's have nine letters.
        """
        if not self.native:
            text, call = tagged_call(completion.content, completion.finish_reason, self.tools)
            return text, (call,) if call else ()
        calls = list(completion.calls[:MAX_TURN_CALLS])
        if calls and completion.finish_reason == "length" and parsed(calls[-1].arguments) is None:
            calls.pop()  # cut in the middle
        number = sum(len(part.calls) for part in conversation.parts)
        named = (replace(call, id=f"call{number + i:05}") for i, call in enumerate(calls, 1))
        return completion.content, tuple(named)

    def _without_call(self, conversation: Conversation, cut: bool) -> Conversation:
        """Return the conversation after a turn that called no tool, which gets a message, or its end."""
        message = self.wording.cut if cut else self.wording.no_call
        after = conversation.with_message(message, status="cut" if cut else "no_call", notice=message)
        last = after.turns[-MAX_IDLE_TURNS:]
        if len(last) == MAX_IDLE_TURNS and all(turn.status in ("cut", "no_call") for turn in last):
            why = f"the model called no tool in {MAX_IDLE_TURNS} turns in a row"
            return after.waiting_for(Failure("truncated" if cut else "no_marker", why))
        return self._next(after)

    def _carry_out(self, conversation: Conversation) -> Conversation:
        """Return the conversation after its pending calls, up to one that has to search or that ends it."""
        while conversation.pending:
            call = conversation.pending[0]
            try:
                outcome = self._outcome(conversation, call)
            except BadCall as bad:
                conversation = self._answered(conversation, bad.status, str(bad), notice=str(bad))
                continue
            if isinstance(outcome, AwaitSearch):
                return conversation.with_last_turn(query=outcome.query, wanted=outcome.k).waiting_for(outcome)
            if isinstance(outcome, Chosen | Answered):
                return self._finished(conversation, outcome)
            opened = self._opened(conversation, call)
            conversation = self._answered(conversation, "ok", outcome, information=outcome, shown=opened, opened=opened)
        return self._next(conversation)

    def _opened(self, conversation: Conversation, call: ToolCall) -> tuple[str, ...]:
        """Return the document that a call looked into, if it is such a call."""
        if call.name not in ("get_document", "find"):
            return ()
        return (labels(conversation)[label(arguments_of(call, self.tools)["id"])].id,)

    def _outcome(self, conversation: Conversation, call: ToolCall) -> str | AwaitSearch | Chosen | Answered:
        """Return the result of a call, or what has to be done. Raises BadCall if it cannot be carried out."""
        arguments, name = arguments_of(call, self.tools), tool_of(call, self.tools)
        if name == "think":
            return NOTED
        seen = labels(conversation)
        if name == "answer":
            return _answer(arguments, seen)
        if name == "finish":
            ids = ids_of(arguments)
            if ids and not any(each in seen for each in ids):
                raise BadCall("unknown_ids", f"No search returned passages with these ids: {', '.join(ids)[:200]}.")
            return Chosen(tuple(seen[each].id for each in ids if each in seen))
        if conversation.search_off:
            raise BadCall("limit", self.wording.last_turn)
        if name == "get_document" or name == "find":
            if (wanted := label(arguments["id"])) not in seen:
                raise BadCall("unknown_ids", f"No search returned a passage with the id {wanted[:40]!r}.")
            hit, room = seen[wanted], self._room(conversation)
            return self._whole(wanted, hit, room) if name == "get_document" else _places(hit, arguments["text"], room)
        if name != "search":
            assert_never(name)
        query, count = search_of(arguments, self.topk)
        done = [turn for turn in conversation.turns if turn.documents is not None]
        if count <= max((turn.wanted for turn in done if turn.query.casefold() == query.casefold()), default=0):
            raise BadCall("repeated", REPEATED)
        if conversation.searches >= self.searches:
            enough = self.wording.searched_enough
            raise BadCall("limit", f"The limit of {self.searches} searches is reached. {enough}")
        return AwaitSearch(query, count)

    def _answered(self, conversation: Conversation, status: Status, text: str, **turn: Any) -> Conversation:
        """Return the conversation with the result of its first pending call."""
        call, *rest = conversation.pending
        message = Message("tool", text, call_id=call.id) if self.native else Message("user", text)
        changed = conversation.with_last_turn(status=status, **turn)
        further = (AgentTurn(_printed(rest[0]), further=True),) if rest else ()
        return replace(
            changed,
            parts=(*changed.parts, message),
            turns=(*changed.turns, *further),
            pending=tuple(rest),
            state=AwaitModel(),
        )

    def _finished(self, conversation: Conversation, end: Chosen | Answered) -> Conversation:
        """Return the end of the conversation. Calls after that of finish or answer are recorded and ignored."""
        call, *rest = conversation.pending
        arguments = arguments_of(call, self.tools)
        named = ids_of(arguments) if isinstance(end, Chosen) else _named_ids(arguments)
        unknown = [each for each in named if each not in labels(conversation)]
        notice = f"No search returned passages with these ids: {', '.join(unknown)[:200]}." if unknown else ""
        done = conversation.with_last_turn(status="unknown_ids" if unknown else "ok", notice=notice)
        ignored = tuple(AgentTurn(_printed(each), further=True, status="ignored") for each in rest)
        return replace(done, turns=(*done.turns, *ignored), pending=(), state=end)

    def _next(self, conversation: Conversation) -> Conversation:
        """Return the conversation before the next turn of the model. Before the last one the model is warned."""
        if conversation.search_off:
            if conversation.turns[-1].status == "cut":
                return conversation.waiting_for(Failure("truncated", "the last turn reached its limit of tokens"))
            what = "answer" if self.answers else "finish"
            return conversation.waiting_for(Failure("no_marker", f"the model did not {what} in its last turn"))
        if conversation.model_turns < self.turns - 1:
            return conversation
        last = replace(conversation.parts[-1], content=f"{conversation.parts[-1].content}\n\n{self.wording.last_turn}")
        return replace(conversation, parts=(*conversation.parts[:-1], last), search_off=True)

    def _room(self, conversation: Conversation) -> int:
        """Return the maximum number of tokens of one result: all results of a turn share the room."""
        calls = next((part.calls for part in reversed(conversation.parts) if part.role == "assistant"), ())
        return self.room // max(1, len(calls))

    def _listed(self, conversation: Conversation, documents: Sequence[Hit]) -> tuple[str, bool]:
        """Return the documents of a search as text, and True if they had to be shortened more than usual."""
        seen = {hit.id: name for name, hit in labels(conversation).items()}
        new = [hit for hit in documents if hit.id not in seen]
        names = seen | {hit.id: f"d{number}" for number, hit in enumerate(new, len(seen) + 1)}

        def render(words: int) -> str:
            shown = (
                f"[{names[hit.id]}] (shown before)" if hit.id in seen else _passage(names[hit.id], hit, words)
                for hit in documents
            )
            return "\n\n".join(shown) or NOTHING_FOUND

        fitted = fit(render, approximate_tokens, self._room(conversation), 1, SHOWN_WORDS)
        text, words = fitted or (render(1), 1)
        return text, words < SHOWN_WORDS

    def _whole(self, name: str, hit: Hit, room: int) -> str:
        most = max(1, len(hit.contents.split()))
        fitted = fit(lambda words: _passage(name, hit, words), approximate_tokens, room, 1, most)
        return fitted[0] if fitted else _passage(name, hit, 1)


def labels(conversation: Conversation) -> Mapping[str, Hit]:
    """Return the documents that the model has seen by their numbers: d1, d2, … in the order of their appearance."""
    seen: dict[str, Hit] = {}
    for turn in conversation.turns:
        for hit in turn.documents or ():
            seen.setdefault(hit.id, hit)
    return {f"d{number}": hit for number, hit in enumerate(seen.values(), 1)}


def _answer(arguments: Mapping[str, Any], seen: Mapping[str, Hit]) -> Answered:
    """Return the end of a conversation with an answer. Ids that no search returned are no documents."""
    text = plain_citations(arguments["answer"].strip())
    labelled = [f"d{number}" for number in cited_numbers(text)]
    cited = tuple(dict.fromkeys(seen[each].id for each in labelled if each in seen))
    kept = tuple(seen[each].id for each in _named_ids(arguments) if each in seen)
    return Answered(text, confidence=confidence_of(arguments.get("confidence")), cited=cited, kept=kept)


def _named_ids(arguments: Mapping[str, Any]) -> list[str]:
    """Return the ids of an answer. An answer whose list cannot be read is an answer without one."""
    try:
        return ids_of({"ids": arguments.get("ids") or []})
    except BadCall:
        return []


def _places(hit: Hit, wanted: str, room: int) -> str:
    """Return the places of a document where words are, each with the words around it."""
    words = hit.contents.split()
    plain, sought = [word.casefold() for word in words], " ".join(wanted.casefold().split())
    count = len(sought.split())
    starts = [i for i in range(len(words)) if sought in " ".join(plain[i : i + count])]
    if not starts:
        return f"{wanted[:100]!r} is not in this passage."

    def render(size: int) -> str:
        around = (words[max(0, i - size) : i + count + size] for i in starts[:MAX_PLACES])
        return "\n\n".join(f"… {' '.join(part)} …" for part in around)

    fitted = fit(render, approximate_tokens, room, 1, PLACE_WORDS)
    return fitted[0] if fitted else render(1)


def _passage(name: str, hit: Hit, words: int) -> str:
    title, text = title_and_text(hit.contents)
    return f"[{name}] {f'{title}: ' if title else ''}{first_words(text, words)}"


def _spoken(text: str) -> str:
    """Return a text without the thoughts before it. Servers do not expect them back."""
    return "" if text.startswith("<think>") and "</think>" not in text else text.rpartition("</think>")[2].strip()


def _printed(call: ToolCall) -> str:
    return f"{call.name}({call.arguments})"
