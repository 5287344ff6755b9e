"""What a reader reads, and what it cites."""

from r2med import Dataset
from r2med.assessment.answers.citations import cited_sentences
from r2med.assessment.answers.reading import random_passages
from r2med.data.dataset import Query


def test_an_empty_document_does_not_end_the_random_passages() -> None:
    corpus = {f"e{number}": " " for number in range(50)} | {"d": "one two three", "r": "relevant"}
    dataset = Dataset.of([Query("q", "what", "this")], corpus, {"q": {"r": 1}}, name="small")
    assert random_passages(dataset, dataset.queries[0], 100).documents == ("d",)


def test_a_reference_that_is_quoted_from_a_passage_is_not_a_citation() -> None:
    passage = "Steroids shorten the stay in hospital [3,4]. Other drugs did not help."
    read, texts = [f"d{number}" for number in range(1, 6)], [passage, "", "", "", ""]
    quoting = "The passage says: Steroids shorten the stay in hospital [3,4]. So they help [1]."
    assert [each.documents for each in cited_sentences(quoting, read, texts)] == [(), ("d1",)]
    own = "They shorten the time that patients stay [3,4]."
    assert [each.documents for each in cited_sentences(own, read, texts)] == [("d3", "d4")]
    behind = "Steroids shorten the stay in hospital. [3,4]"
    assert [each.documents for each in cited_sentences(behind, read, texts)] == [()]
