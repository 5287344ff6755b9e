"""Serve systems over HTTP: a search page with POST /search, and POST /retrieve for agents."""
