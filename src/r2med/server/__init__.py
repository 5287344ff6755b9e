"""Systems behind HTTP: a search page with its POST /search, and POST /retrieve for agents that run elsewhere."""
