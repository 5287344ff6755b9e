"""Chat models: ask LLMs without losing or repeating an answer, and without mistaking an error for an answer."""
