"""Import of tables: what columns mean, files and workbooks, ids that match, and the folder that is written."""
