"""Search agents: LLMs that search between their thoughts, and end with a text that is searched like any expansion."""
