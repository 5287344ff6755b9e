"""Questions to LLMs with typed answers, for construction, analysis and reranking."""
