"""Write the dataset of a build: its folder, datasheet, Croissant metadata and hub card."""
