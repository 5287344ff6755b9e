"""Rubrics: what is asked about an item, in which words it is answered, and what is rated."""
