"""A corpus behind HTTP: `POST /retrieve` in the protocol of Search-R1, for agents that run elsewhere."""
