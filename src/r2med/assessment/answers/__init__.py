"""Answers of LLMs that read the results of a system: what they read, asking, statuses, scores and records."""
