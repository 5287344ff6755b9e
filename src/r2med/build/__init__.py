"""Making a benchmark of R2MED's kind: sources, filters, corpus, candidates, judging, review, datasheet."""
