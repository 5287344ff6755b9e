"""The calls of LLMs in a trace, with the attribute names of OpenInference."""

from __future__ import annotations

import json

from r2med.foundation.engine.tracing import Span, TraceFile, call_owners, current_span
from r2med.models.llm.chat import ChatRequest, Failure, Message, RawAnswer


class LLMSpans:
    """Writes a span for each answer of one LLM, as parts of the span around this code or as traces of their own."""

    def __init__(self, model: str, file: TraceFile | None) -> None:
        self._model = model
        self._parent = current_span()
        self._file = self._parent.file if self._parent else file
        self._owners = call_owners()  # answers arrive in the threads of the backend

    def write(self, request: ChatRequest, answer: RawAnswer | Failure, from_journal: bool = False) -> None:
        """Write the span of an answer that has just arrived, or that an earlier run left in the journal."""
        # Equal requests of several items are asked once. For the others, the answer is one that was there already.
        for number, owner in enumerate(self._owners.get(request, (self._parent,))):
            file = owner.file if owner else self._file
            if file is not None:
                self._write(Span(file, self._model, "LLM", owner), request, answer, from_journal or number > 0)

    def _write(self, span: Span, request: ChatRequest, answer: RawAnswer | Failure, from_journal: bool) -> None:
        ended = span.started
        span.started -= 0 if from_journal else int(answer.seconds * 1e9)
        span.set(
            {
                "llm.model_name": self._model,
                "llm.invocation_parameters": json.dumps(request.settings),
                "llm.token_count.prompt": answer.prompt_tokens,
                "llm.token_count.completion": answer.completion_tokens,
                "llm.token_count.total": answer.prompt_tokens + answer.completion_tokens,
                "r2med.from_journal": from_journal,
            }
        )
        if isinstance(answer, Failure):
            span.fail(answer.kind, answer.message)
        else:
            span.set({"llm.finish_reason": answer.finish_reason})
        if span.has_content:
            _add_question(span, request)
            if isinstance(answer, RawAnswer):
                _add_answer(span, request, answer)
        span.end(ended)


def _add_question(span: Span, request: ChatRequest) -> None:
    if request.prompt is not None:
        span.set_content({"input.value": request.prompt, "llm.prompts.0.prompt.text": request.prompt})
        return
    span.set_content({"input.value": request.messages[-1].content})
    for number, message in enumerate(request.messages):
        span.set_content(_message(f"llm.input_messages.{number}.message", message))
    for number, tool in enumerate(json.loads(request.tools or "[]")):
        span.set_content({f"llm.tools.{number}.tool.json_schema": json.dumps(tool, ensure_ascii=False)})


def _add_answer(span: Span, request: ChatRequest, answer: RawAnswer) -> None:
    span.set_content({"output.value": answer.content})
    if request.prompt is not None:
        span.set_content({"llm.choices.0.completion.text": answer.content})
    else:
        said = Message("assistant", answer.content, answer.calls)
        span.set_content(_message("llm.output_messages.0.message", said))


def _message(prefix: str, message: Message) -> dict[str, str]:
    written = {f"{prefix}.role": message.role, f"{prefix}.content": message.content}
    if message.call_id:
        written[f"{prefix}.tool_call_id"] = message.call_id
    for number, call in enumerate(message.calls):
        of_call = f"{prefix}.tool_calls.{number}.tool_call"
        written |= {f"{of_call}.id": call.id, f"{of_call}.function.name": call.name}
        written[f"{of_call}.function.arguments"] = call.arguments
    return written
