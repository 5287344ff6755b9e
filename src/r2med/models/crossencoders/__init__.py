"""Cross-encoders: models that read a query and a document together and return one score."""
