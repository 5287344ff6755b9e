"""Packs: records with the vectors, texts, scores and judgements behind them, in one file that can be passed on."""
