"""Does fine-tuning help? A split that does not leak, a split by query, and shuffled labels, with real weights.

    python benchmarks/training.py prepare DATASET MODEL OUT     # with r2med: texts, folds, weights in half precision
    python benchmarks/training.py run OUT --result result.json  # with torch and sentence-transformers alone

`prepare` writes everything that `run` needs into one folder of some 50 MB. `run` needs neither r2med nor a trainer: a
plain loop with the loss of multiple negatives, so that a lent machine needs no further package. Each query is scored by
the model of its fold on the whole corpus. Differences to the model before training are paired by query; a query counts
once, with its mean over seeds. Intervals are bootstrap intervals over groups of queries, p-values are those of sign
flips over groups.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CUTOFF, RESAMPLES, LEVEL = 10, 10_000, 0.05
TOKENS = 256
BATCH, EPOCHS, RATE, WARM_UP = 32, 4, 5e-5, 0.1
PER_QUERY = ("queries", "qrels", "folds", "groups")
CROSS_EPOCHS, CROSS_DEPTH, CROSS_NEGATIVES = 8, 100, 7
"""A new head needs more steps than the weights below it."""


def prepare(dataset: str, model: str, out: Path, folds: int) -> None:
    """Write the texts, labels and folds of a dataset, and the weights of a model in half precision."""
    from sentence_transformers import SentenceTransformer

    import r2med
    from r2med.assessment.training.query_groups import query_groups

    data = r2med.load(dataset)
    groups = query_groups(data)
    split = groups.folds(folds)
    content = {
        "name": data.name,
        "queries": {query.id: query.text for query in data.queries if query.id in data.qrels},
        "corpus": dict(data.corpus),
        "qrels": {query: dict(judged) for query, judged in data.qrels.items()},
        "folds": {query: row.fold for query, row in split.of_query.items()},
        "groups": dict(groups.of_query),
    }
    out.mkdir(parents=True, exist_ok=True)
    with gzip.open(out / "data.json.gz", "wt", encoding="utf-8") as file:
        json.dump(content, file)
    SentenceTransformer(model, device="cpu").half().save_pretrained(str(out / "model"))
    sizes = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {len(content['queries'])} queries, {len(content['corpus'])} documents, {sizes / 2**20:.0f} MiB")


@dataclass
class Data:
    queries: dict[str, str]
    corpus: dict[str, str]
    qrels: dict[str, dict[str, int]]
    folds: dict[str, int]
    groups: dict[str, int]
    name: str = ""
    asked: list[str] = field(init=False)
    documents: list[str] = field(init=False)
    row: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.asked, self.documents = list(self.queries), list(self.corpus)
        self.row = {document: number for number, document in enumerate(self.documents)}

    def pairs(self, held_out: set[str]) -> list[tuple[str, str]]:
        """Return the pairs of a query and a relevant document of all other queries."""
        return [
            (query, document)
            for query in self.asked
            if query not in held_out
            for document, grade in self.qrels[query].items()
            if grade > 0 and document in self.row
        ]

    def leaks(self, folds: dict[str, int]) -> int:
        """Return the number of queries that share a relevant document with a query of another fold."""
        owners: dict[str, set[int]] = {}
        for query in self.asked:
            for document, grade in self.qrels[query].items():
                if grade > 0:
                    owners.setdefault(document, set()).add(folds[query])
        return sum(
            any(len(owners.get(document, ())) > 1 for document, grade in self.qrels[query].items() if grade > 0)
            for query in self.asked
        )


class Bench:
    """The base model, and texts as tokens, so that 150 trainings tokenize nothing twice."""

    def __init__(self, folder: Path, device: str, documents: int = 0, queries: int = 0, tokens: int = TOKENS) -> None:
        import torch
        from sentence_transformers import SentenceTransformer

        with gzip.open(folder / "data.json.gz", "rt", encoding="utf-8") as file:
            self.data = Data(**json.load(file))
        if queries:
            asked = dict(list(self.data.queries.items())[:queries])
            few = {name: {query: getattr(self.data, name)[query] for query in asked} for name in PER_QUERY}
            self.data = Data(**{**_fields(self.data), **few})
        if documents:  # a smaller corpus for a trial: the relevant documents first
            relevant = {document for judged in self.data.qrels.values() for document in judged}
            first = sorted(self.data.corpus, key=lambda name: name not in relevant)[:documents]
            self.data = Data(**{**_fields(self.data), "corpus": {name: self.data.corpus[name] for name in first}})
        self.torch, self.device, self.folder, self.tokens = torch, device, folder, tokens
        self.model = SentenceTransformer(str(folder / "model"), device=device).float()
        self.start = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.tokenizer = self.model.tokenizer
        self.query_tokens = self._tokens([self.data.queries[query] for query in self.data.asked])
        self.document_tokens = self._tokens(list(self.data.corpus.values()))
        self.place = {query: number for number, query in enumerate(self.data.asked)}

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        read = self.tokenizer(list(texts), truncation=True, max_length=self.tokens)
        return [list(ids) for ids in read["input_ids"]]

    def padded(self, tokens: Sequence[Sequence[int]]) -> dict[str, Any]:
        longest = max(map(len, tokens))
        ids = np.full((len(tokens), longest), self.tokenizer.pad_token_id or 0)
        mask = np.zeros_like(ids)
        for number, row in enumerate(tokens):
            ids[number, : len(row)], mask[number, : len(row)] = row, 1
        made = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return {name: self.torch.from_numpy(array).to(self.device) for name, array in made.items()}

    def autocast(self) -> Any:
        return self.torch.autocast(self.device, dtype=self.torch.bfloat16, enabled=self.device == "cuda")

    def reset(self) -> None:
        self.model.load_state_dict(self.start)

    def vectors(self, tokens: Sequence[Sequence[int]]) -> Any:
        """Return normalised vectors in the order of the texts. Texts of similar lengths are encoded together."""
        order = sorted(range(len(tokens)), key=lambda number: -len(tokens[number]))
        size = 512 if self.device == "cuda" else 64
        found = []
        self.model.eval()
        with self.torch.inference_mode(), self.autocast():
            for start in range(0, len(order), size):
                batch = self.padded([tokens[number] for number in order[start : start + size]])
                found.append(self.model(batch)["sentence_embedding"].float())
        made = self.torch.cat(found)
        back = self.torch.empty(len(order), dtype=self.torch.long)
        back[self.torch.tensor(order)] = self.torch.arange(len(order))
        return self.torch.nn.functional.normalize(made[back.to(made.device)], dim=1)

    def ranked(self, queries: Sequence[str], depth: int) -> list[list[int]]:
        """Return the rows of the best documents of each query."""
        asked = self.vectors([self.query_tokens[self.place[query]] for query in queries])
        scores = asked @ self.vectors(self.document_tokens).T
        rows: list[list[int]] = scores.topk(min(depth, scores.shape[1]), dim=1).indices.tolist()
        return rows

    def train(self, pairs: Sequence[tuple[str, str]], seed: int) -> None:
        """Fine-tune the model with multiple negatives: the other documents of a batch."""
        torch = self.torch
        torch.manual_seed(seed)
        chance = np.random.default_rng(seed)
        steps = list(_batches(pairs, chance, EPOCHS))
        optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, len(steps)))
        self.model.train()
        for batch in steps:
            with self.autocast():
                made = [
                    torch.nn.functional.normalize(self.model(self.padded(tokens))["sentence_embedding"].float(), dim=1)
                    for tokens in (
                        [self.query_tokens[self.place[query]] for query, _ in batch],
                        [self.document_tokens[self.data.row[document]] for _, document in batch],
                    )
                ]
            loss = torch.nn.functional.cross_entropy(
                20 * made[0] @ made[1].T, torch.arange(len(batch), device=self.device)
            )
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimiser.step()
            schedule.step()

    def scored(self, folds: dict[str, int], seed: int, shuffled: bool = False) -> dict[str, float]:
        """Return the score of each query by the model of its fold."""
        scores: dict[str, float] = {}
        for fold in sorted(set(folds.values())):
            held_out = {query for query, number in folds.items() if number == fold}
            pairs = self.data.pairs(held_out)
            if shuffled:
                order = np.random.default_rng(1000 * seed + fold).permutation(len(pairs))
                pairs = [(query, pairs[other][1]) for (query, _), other in zip(pairs, order, strict=True)]
            self.reset()
            self.train(pairs, 100 * seed + fold)
            asked = [query for query in self.data.asked if query in held_out]
            scores |= self.ndcg(asked, self.ranked(asked, CUTOFF))
        self.reset()
        return scores

    def ndcg(self, queries: Sequence[str], ranked: Sequence[Sequence[int]]) -> dict[str, float]:
        return {
            query: ndcg([self.data.documents[row] for row in rows], self.data.qrels[query])
            for query, rows in zip(queries, ranked, strict=True)
        }

    def cross_scored(self, folds: dict[str, int], seed: int) -> dict[str, float]:
        """Return the score of each query after a cross-encoder of its fold reranked what the base model found."""
        self.reset()
        candidates = dict(zip(self.data.asked, self.ranked(self.data.asked, CROSS_DEPTH), strict=True))
        scores: dict[str, float] = {}
        for fold in sorted(set(folds.values())):
            held_out = {query for query, number in folds.items() if number == fold}
            cross = self._cross(self.data.pairs(held_out), 100 * seed + fold)
            for query in (query for query in self.data.asked if query in held_out):
                rows = candidates[query]
                with self.torch.inference_mode(), self.autocast():
                    logits = cross(**self._joined([(query, row) for row in rows])).logits[:, 0].float().tolist()
                order = sorted(range(len(rows)), key=lambda number: -logits[number])
                scores |= self.ndcg([query], [[rows[number] for number in order]])
        return scores

    def _joined(self, pairs: Sequence[tuple[str, int]]) -> dict[str, Any]:
        """Return pairs of a query and a document as one input each."""
        texts = [(self.data.queries[query], self.data.corpus[self.data.documents[row]]) for query, row in pairs]
        read = self.tokenizer(
            *map(list, zip(*texts, strict=True)),
            truncation=True, max_length=self.tokens, padding=True, return_tensors="pt",
        )  # fmt: skip
        return {name: value.to(self.device) for name, value in read.items()}

    def _cross(self, pairs: Sequence[tuple[str, str]], seed: int) -> Any:
        """Train a cross-encoder: the weights of the model with a new head, and documents of others as negatives."""
        from transformers import AutoModelForSequenceClassification

        torch = self.torch
        torch.manual_seed(seed)
        chance = np.random.default_rng(seed)
        cross = AutoModelForSequenceClassification.from_pretrained(str(self.folder / "model"), num_labels=1)
        cross = cross.float().to(self.device)
        steps = list(_batches(pairs, chance, CROSS_EPOCHS, 8))
        optimiser = torch.optim.AdamW(cross.parameters(), lr=RATE)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, len(steps)))
        cross.train()
        known = {query: set(self.data.qrels[query]) for query, _ in pairs}
        documents = sorted({document for _, document in pairs})
        for batch in steps:
            rows = []
            for query, document in batch:
                others = [each for each in documents if each not in known[query]]
                chosen = chance.choice(len(others), CROSS_NEGATIVES, replace=len(others) < CROSS_NEGATIVES)
                rows += [(query, self.data.row[each]) for each in (document, *(others[number] for number in chosen))]
            with self.autocast():
                logits = cross(**self._joined(rows)).logits[:, 0].float().reshape(len(batch), -1)
            loss = torch.nn.functional.cross_entropy(
                logits, torch.zeros(len(batch), dtype=torch.long, device=self.device)
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        return cross.eval()


def _fields(data: Data) -> dict[str, Any]:
    return {name: getattr(data, name) for name in ("queries", "corpus", "qrels", "folds", "groups", "name")}


def _rate(step: int, steps: int) -> float:
    warm = max(1, int(WARM_UP * steps))
    return (step + 1) / warm if step < warm else max(0.0, (steps - step) / max(1, steps - warm))


def _batches(
    pairs: Sequence[tuple[str, str]], chance: np.random.Generator, epochs: int, size: int = BATCH
) -> Iterator[list[tuple[str, str]]]:
    """Yield batches in which no query and no document is twice: a copy of the positive would be a false negative."""
    for _ in range(epochs):
        waiting = [pairs[number] for number in chance.permutation(len(pairs))]
        while waiting:
            batch: list[tuple[str, str]] = []
            left = []
            for query, document in waiting:
                taken = any(query == other or document == text for other, text in batch)
                (left if taken or len(batch) == size else batch).append((query, document))
            if len(batch) > 1:
                yield batch
            waiting = left if len(batch) > 1 else []


def ndcg(ranking: Sequence[str], grades: dict[str, int]) -> float:
    """Return nDCG@10 with linear gains, as trec_eval computes it."""
    gains = [max(0, grades.get(document, 0)) / np.log2(rank + 2) for rank, document in enumerate(ranking[:CUTOFF])]
    ideal = sorted((max(0, grade) for grade in grades.values()), reverse=True)[:CUTOFF]
    best = sum(grade / np.log2(rank + 2) for rank, grade in enumerate(ideal))
    return float(sum(gains) / best) if best else 0.0


def compared(data: Data, base: dict[str, float], *runs: dict[str, float]) -> dict[str, Any]:
    """Return the paired difference in points: mean over queries of the mean over runs, interval and p-value."""
    differences = {query: 100 * (np.mean([run[query] for run in runs]) - base[query]) for query in data.asked}
    sums: dict[int, list[float]] = {}
    for query, each in differences.items():
        sums.setdefault(data.groups[query], []).append(float(each))
    totals, sizes = (np.array([kind(each) for each in sums.values()]) for kind in (sum, len))
    chance = np.random.default_rng(0)
    drawn = chance.integers(0, len(totals), (RESAMPLES, len(totals)))
    means = totals[drawn].sum(1) / sizes[drawn].sum(1)
    flipped = chance.choice([-1, 1], (RESAMPLES, len(totals))) @ totals
    low, high = np.quantile(means, [LEVEL / 2, 1 - LEVEL / 2])
    return {
        "difference": float(totals.sum() / sizes.sum()),
        "low": float(low),
        "high": float(high),
        "p": float((1 + (np.abs(flipped) >= abs(totals.sum()) - 1e-9).sum()) / (1 + RESAMPLES)),
        "of each run": [float(100 * np.mean([run[q] - base[q] for q in data.asked])) for run in runs],
    }


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Run all trials and return their numbers. They are written after each trial."""
    import torch

    device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    bench = Bench(given.folder, device, given.documents, given.queries, given.tokens)
    data, started = bench.data, time.perf_counter()
    base = bench.ndcg(data.asked, bench.ranked(data.asked, CUTOFF))
    result: dict[str, Any] = {
        "data": data.name, "queries": len(data.asked), "documents": len(data.documents), "device": device,
        "before training": 100 * float(np.mean(list(base.values()))),
        "settings": {"batch": BATCH, "epochs": EPOCHS, "rate": RATE, "tokens": given.tokens},
        "per query": {"before": base},
    }  # fmt: skip

    def note(name: str, value: Any) -> None:
        result[name] = value
        result["seconds"] = time.perf_counter() - started
        print(f"{result['seconds']:7.1f} s  {name}: {json.dumps(value)}", flush=True)
        given.result.write_text(json.dumps(result, indent=1))

    note("before training", result["before training"])
    honest = []
    for seed in range(given.seeds):
        honest.append(bench.scored(data.folds, seed))
        note("honest split", compared(data, base, *honest))
    result["per query"]["honest"] = honest
    leaky, leaks = [], []
    for seed in range(given.seeds):
        order = np.random.default_rng(seed).permutation(len(data.asked))
        count = len(set(data.folds.values()))
        folds = {data.asked[number]: 1 + place % count for place, number in enumerate(order.tolist())}
        leaky.append(bench.scored(folds, seed))
        leaks.append(data.leaks(folds))
        note("split by query", {**compared(data, base, *leaky), "queries that share a document": leaks})
    if leaky:
        result["per query"]["leaky"] = leaky
        both = {query: float(np.mean([each[query] for each in honest])) for query in data.asked}
        note("leak", compared(data, both, *leaky))
    better, all_shuffled = 0, []
    for seed in range(given.shuffled):
        found = compared(data, base, bench.scored(data.folds, 10_000 + seed, shuffled=True))
        better += found["p"] < LEVEL and found["difference"] > 0
        all_shuffled.append({"difference": found["difference"], "p": found["p"]})
        note("shuffled labels", {"seeds": seed + 1, "significantly better": better, "each": all_shuffled})
    if given.cross:
        note("cross-encoder against the dense model", compared(data, base, bench.cross_scored(data.folds, 0)))
    return result


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = words.add_subparsers(dest="part", required=True)
    first = parts.add_parser("prepare")
    first.add_argument("dataset")
    first.add_argument("model")
    first.add_argument("out", type=Path)
    first.add_argument("--folds", type=int, default=5)
    second = parts.add_parser("run")
    second.add_argument("folder", type=Path)
    second.add_argument("--result", type=Path, default=Path("result.json"))
    second.add_argument("--seeds", type=int, default=5)
    second.add_argument("--shuffled", type=int, default=20)
    second.add_argument("--cross", action="store_true", help="train a cross-encoder once, too")
    second.add_argument("--device", default="")
    second.add_argument("--documents", type=int, default=0, help="use a part of the corpus, for a trial")
    second.add_argument("--queries", type=int, default=0, help="use a part of the queries, for a trial")
    second.add_argument("--tokens", type=int, default=TOKENS)
    given = words.parse_args()
    if given.part == "prepare":
        prepare(given.dataset, given.model, given.out, given.folds)
    else:
        run(given)


if __name__ == "__main__":
    main()
