"""Training sets from judged datasets: groups of queries, folds that do not leak, rows, formats and the datasheet."""
