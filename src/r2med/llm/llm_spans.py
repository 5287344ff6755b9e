"""The calls of LLMs in a trace, with the attribute names of OpenInference."""

from __future__ import annotations

import json

from r2med.engine.tracing import Span, TraceFile, current_span
from r2med.llm.chat import ChatRequest, Failure, RawAnswer


class LLMSpans:
    """Writes a span for each answer of one LLM, as parts of the span around this code or as traces of their own."""

    def __init__(self, model: str, file: TraceFile | None) -> None:
        self._model = model
        self._parent = current_span()
        self._file = self._parent.file if self._parent else file

    def write(self, request: ChatRequest, answer: RawAnswer | Failure, from_journal: bool = False) -> None:
        """Write the span of an answer that has just arrived, or that an earlier run left in the journal."""
        if self._file is None:
            return
        span = Span(self._file, self._model, "LLM", self._parent)
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
            span.set_content(
                {"output.value": answer.content, **_message("llm.output_messages.0", "assistant", answer.content)}
            )
        if span.has_content:
            self._add_question(span, request)
        span.end(ended)

    @staticmethod
    def _add_question(span: Span, request: ChatRequest) -> None:
        if request.prompt is not None:
            span.set_content({"input.value": request.prompt, "llm.prompts.0.prompt.text": request.prompt})
            return
        span.set_content({"input.value": request.messages[-1].content})
        for number, message in enumerate(request.messages):
            span.set_content(_message(f"llm.input_messages.{number}", message.role, message.content))


def _message(prefix: str, role: str, content: str) -> dict[str, str]:
    return {f"{prefix}.message.role": role, f"{prefix}.message.content": content}
