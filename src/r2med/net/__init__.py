"""HTTP to others: where a service is, asking it within limits, trying again, how much at once, what may be spent."""
