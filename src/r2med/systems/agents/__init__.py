"""Search agents: LLMs that search while they think. Their last text is searched like that of any expansion."""
