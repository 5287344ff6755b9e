"""Write what was built: dataset folder, datasheet, Croissant, hub card."""
