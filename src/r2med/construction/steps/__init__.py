"""Steps between the sources and the labels: filters, corpus, candidates, judges."""
