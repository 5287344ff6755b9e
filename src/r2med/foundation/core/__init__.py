"""Basic values that all other rooms use: errors, cost, the grammar of specs, stages, cards, plugins."""
