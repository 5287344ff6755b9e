"""Writers of the generated pages, one file for each page; docs/make_reference.py calls them."""
