"""Chat models: asking LLMs so that nothing is lost, repeated, or mistaken for an answer."""
