"""Annotators: qualification and years are kept apart from names, and are published as counts."""

import csv

from r2med.assessment.review.annotators import (
    Annotator,
    annotators_file,
    export_annotators,
    introduce,
    read_annotators,
)
from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.reviews import Review
from r2med.construction.review_items import add_reviews


def reviewed_table(folder):
    table = folder / "c.jsonl"
    table.write_text('{"question_id": "q", "id": "c", "question": "x?", "passage": "y"}\n')
    people = ("Annabel Example", "Bo Example")
    add_reviews(table, [Review(question="q", chunk="c", annotator=name, verdict="accept") for name in people])
    return table


def test_neither_file_alone_connects_a_name_with_a_qualification(tmp_path):
    table = reviewed_table(tmp_path)
    assert read_annotators(table) == [Annotator(), Annotator()]
    with ReviewBook(reviews_file(table)) as book:
        introduce(table, book, "Annabel Example", Annotator(qualification="nurse", years=3))
        introduce(table, book, "Annabel Example", Annotator(qualification="physician", years=12))
        introduce(table, book, "Cy Curious", Annotator(qualification="pharmacist", years=1))
        assert book.number("Annabel Example") != book.number("Bo Example")
    reviews, annotators = reviews_file(table).read_bytes(), annotators_file(table).read_bytes()
    assert b"Annabel" in reviews
    assert b"physician" in annotators
    assert b"physician" not in reviews
    assert b"Annabel" not in annotators
    # Only people who reviewed something count, and the last of what they said.
    assert read_annotators(table) == [Annotator(), Annotator(qualification="physician", years=12)]


def test_an_export_has_qualifications_without_names_and_numbers(tmp_path):
    export_annotators(tmp_path / "a.csv", [Annotator(qualification="=physician", years=0), Annotator()])
    rows = list(csv.reader((tmp_path / "a.csv").open()))
    assert rows == [["qualification", "years"], ["", ""], ["'=physician", "0"]]
