"""How others see and use results: leaderboard, site, packs, bridges."""
