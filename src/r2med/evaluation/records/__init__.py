"""The file format of results: a record of one evaluation, and collections of records."""
