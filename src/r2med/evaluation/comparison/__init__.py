"""Compare systems by their records: tests, verdicts, tables and figures for papers."""
