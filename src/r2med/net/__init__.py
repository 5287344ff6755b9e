"""Asking services over a network: where they are, how long to be patient, what may be spent."""
