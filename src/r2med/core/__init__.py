"""Values and tables that everything else uses: errors, cost, the grammar of specs, stages, cards, plugins."""
