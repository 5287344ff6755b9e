"""Prompts for LLMs: template files, and filling them so that they fit the context."""
