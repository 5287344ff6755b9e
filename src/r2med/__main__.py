"""`python -m r2med`."""

from r2med.cli import main

main()
