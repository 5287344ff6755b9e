"""The steps between sources and labels: filters, corpus, candidates, judges."""
