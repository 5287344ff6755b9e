"""Pages as values: tables with typed columns, estimates and charts, and one renderer for each format."""
