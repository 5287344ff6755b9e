"""HTTP requests to services: addresses, limits, retries, concurrency and budgets."""
