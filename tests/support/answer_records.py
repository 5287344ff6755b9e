"""Answer records as `r2med answer` would have written them, made without an LLM.

`answered` makes answers to the questions of a dataset, with citations, nuggets and verdicts. `write` of
`support.synthetic_answers` puts a record with its answers where the command does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from r2med.assessment.answers.answer_controls import (
    DENIED,
    OTHER,
    OTHER_NUGGETS,
    OTHER_PASSAGE,
    OWN_NUGGETS,
    OWN_PASSAGE,
    REFERENCE,
)
from r2med.assessment.answers.answer_scores import rule_verdict, scores_of
from r2med.assessment.answers.citations import cited_sentences
from r2med.assessment.answers.reading import passages_of, random_passages, relevant_passages
from r2med.data.dataset import Dataset, Query
from r2med.data.nuggets_file import Nugget
from r2med.evaluation.records.answer_facts import AnswerFacts, CitedSentence, GivenAnswer, JudgeFacts
from r2med.evaluation.records.answer_words import READ_CONDITIONS, AnswerForm, Condition
from r2med.evaluation.records.dataset_facts import dataset_facts, query_facts
from r2med.evaluation.records.record import FORMATS, Record, record_key
from r2med.evaluation.records.record_facts import DatasetFacts, QueryFacts
from support.synthetic_answers import COSTS, READER, SYSTEM, means, stages

JUDGE = "gpt4"
CONTROLS = dict.fromkeys((REFERENCE, OWN_PASSAGE, OWN_NUGGETS), (20, 20)) | {
    **dict.fromkeys((OTHER, DENIED), (9, 10)),
    **dict.fromkeys((OTHER_PASSAGE, OTHER_NUGGETS), (19, 20)),
}
"""Kind of control -> how many were right, and how many were asked."""


def answered(
    dataset: Dataset,
    right: Mapping[Condition, Sequence[str]] | None = None,
    passages: int = 3,
    lists: Mapping[str, Sequence[str]] | None = None,
) -> list[GivenAnswer]:
    """Return an open answer to each judged question of a dataset that has a reference answer, in each condition.

    `right` has the queries that are answered right; by default half of those with passages that help. A right answer
    says the reference answer and cites the first passage. A wrong answer cites the last one, and is not supported.
    `lists` is the ranking that is read: query -> documents, best first.
    """
    asked = [query for query in dataset.queries if query.answer and query.id in dataset.qrels]
    known = right or {"retrieved": [query.id for query in asked[::2]], "relevant": [query.id for query in asked]}
    return [
        _answer(dataset, query, condition, query.id in known.get(condition, ()), passages, lists)
        for condition in READ_CONDITIONS
        for query in asked
    ]


def _answer(
    dataset: Dataset,
    query: Query,
    condition: Condition,
    right: bool,
    passages: int,
    lists: Mapping[str, Sequence[str]] | None,
) -> GivenAnswer:
    read = _passages(dataset, query, condition, passages, lists)
    cited = (read[0 if right else -1],) if read else ()
    text = query.answer if right else "I think that it is something else entirely."
    grades = dataset.qrels[query.id]
    scores = {
        "accuracy": float(right),
        "nugget-recall": 0.75 if right else 0.0,
        "nugget-precision": 0.5 if right else 0.0,
        "citation-support": float(right and bool(cited)),
        **({"citation-relevance": float(grades.get(cited[0], 0) > 0)} if cited else {}),
    }
    if not read:  # nothing could be cited
        scores.pop("citation-support")
    return GivenAnswer(
        query=query.id,
        condition=condition,
        read=read,
        tokens=100 + 50 * len(read),
        status="answered",
        text=f"{text} [{1 if right else len(read)}]" if read else text,
        sentences=(CitedSentence(text=text, documents=cited, supported=right and bool(cited) if read else None),),
        by_rule=True if right else None,
        grade="right" if right else "wrong",
        why="The answer says the same as the reference." if right else "The answer names another cause.",
        nuggets={"n1": "support", "n2": "partial"} if right else {"n1": "none", "n2": "none"},
        statements=2,
        statements_found=1 if right else 0,
        scores=scores,
    )


def rescored(answer: GivenAnswer, dataset: Dataset, nuggets: Sequence[Nugget] = ()) -> GivenAnswer:
    """Return an answer with the sentences, citations, verdict and scores of its text, as the package computes them.

    With nuggets, it contains the vital ones completely and the others in part.
    """
    reference = next(query.answer for query in dataset.queries if query.id == answer.query)
    said = [sentence.supported for sentence in answer.sentences]
    texts = passages_of(dataset, answer.read).texts
    found = [
        sentence.model_copy(update={"supported": verdict})
        for sentence, verdict in zip(cited_sentences(answer.text, answer.read, texts), said, strict=False)
    ]
    matched = {each.id: "support" if each.vital else "partial" for each in nuggets}
    counts = {"statements": len(found) if matched else 0, "statements_found": min(1, len(found)) if matched else 0}
    answer = answer.model_copy(update={"sentences": tuple(found), "nuggets": matched, **counts})
    answer = answer.model_copy(update={"by_rule": rule_verdict(answer, reference)})
    return answer.model_copy(update={"scores": scores_of(answer, nuggets, dataset.qrels[answer.query], judged=True)})


def _passages(
    dataset: Dataset, query: Query, condition: Condition, count: int, lists: Mapping[str, Sequence[str]] | None
) -> tuple[str, ...]:
    """Return what is read. Without a ranking, a relevant passage comes first in retrieved."""
    relevant = [document for document, grade in dataset.qrels[query.id].items() if grade > 0]
    others = [document for document in dataset.corpus.ids(range(len(dataset.corpus))) if document not in relevant]
    retrieved = tuple((lists[query.id] if lists else [*relevant[:1], *others])[:count])
    if condition == "random":
        return random_passages(dataset, query, passages_of(dataset, retrieved).tokens).documents
    if condition == "relevant":
        return relevant_passages(dataset, query, count).documents
    return retrieved if condition == "retrieved" else ()


def answer_record(
    answers: Sequence[GivenAnswer],
    dataset: Dataset,
    system: str = SYSTEM,
    reader: str = READER,
    retrieval: Mapping[str, float] | None = None,
) -> Record:
    """Return the record of answers to the questions of a dataset, without the file of its answers."""
    asked = list(dict.fromkeys(each.query for each in answers))
    conditions = list(dict.fromkeys(each.condition for each in answers))
    form: AnswerForm = "choice" if any(each.options for each in answers) else "open"
    nuggets = "0" * 32 if any(each.nuggets for each in answers) else ""
    settings = {
        "retrieval": "",
        "reader": {"llm": reader},
        "form": form,
        "passages": 3,
        "conditions": conditions,
        "queries": 0,
        "judge": {"llm": JUDGE} if form == "open" else "",
        "nuggets": nuggets,
    }
    known = {
        condition: {each.query: each.scores for each in answers if each.condition == condition and each.scores}
        for condition in conditions
    }
    facts: DatasetFacts = dataset_facts(dataset)
    queries: dict[str, QueryFacts] = query_facts(dataset)
    ranked = {query: {"nDCG@10": value} for query, value in (retrieval or dict.fromkeys(asked, 0.5)).items()}
    return Record(
        format=FORMATS["answers"],
        key=record_key(settings, dataset.fingerprint, "answers"),
        system=system,
        settings=settings,
        dataset=facts,
        mean=means(ranked),
        per_query=ranked,
        queries={query: queries[query] for query in asked},
        stages=stages(system, reader),
        versions={},
        source="",
        created="2026-01-01T00:00:00+00:00",
        answers=AnswerFacts(
            reader=reader,
            form=form,
            passages=3,
            mean={condition: means(rows) for condition, rows in known.items()},
            per_query=known,
            statuses={
                condition: dict(Counter(each.status for each in answers if each.condition == condition))
                for condition in conditions
            },
            grades={
                condition: dict(Counter(each.grade for each in answers if each.condition == condition and each.grade))
                for condition in conditions
                if form == "open"
            },
            nuggets=nuggets,
            judge=_judge(answers) if form == "open" else None,
            costs={
                condition: COSTS["read"].times(len(each.read) + 1)
                for condition in conditions
                for each in answers
                if each.condition == condition
            },
        ),
    )


def _judge(answers: Sequence[GivenAnswer]) -> JudgeFacts:
    both = [each for each in answers if None not in (each.by_rule, each.grade)]
    return JudgeFacts(
        judge=JUDGE,
        controls=CONTROLS,
        agreed=sum(each.by_rule == (each.grade == "right") for each in both),
        both=len(both),
    )
