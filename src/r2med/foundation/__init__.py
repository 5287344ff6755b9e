"""What everything stands on: text, store, network, engines, pages."""
