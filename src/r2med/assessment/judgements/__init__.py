"""Further labels for an existing dataset: the pool of unjudged documents, LLM judges, and planted controls."""
