"""Packs: records with the vectors, texts, scores and rerankings behind them, in one file that can be passed on."""
