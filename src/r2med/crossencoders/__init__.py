"""Cross-encoders: a query and a document read together, one score out."""
