"""What others see of a dataset: Croissant metadata and the card of the hub, from plain values."""
