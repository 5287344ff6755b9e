"""What one system finds and another does not."""

from pathlib import Path

from r2med.analysis.material import Material
from r2med.analysis.query_slices import query_slices
from r2med.analysis.system_pairs import complementarity
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import StageFacts
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.records import record, write_records


def with_gold(system: str, values: list[float], ranks: list[dict[str, int]]) -> Record:
    made = record(system, "Biology", values)
    gold = {f"q{number}": each for number, each in enumerate(ranks)}
    stage = StageFacts(**{**dict(made.stages[0]), "gold": gold})
    facts = {query: each.model_copy(update={"positives": 2}) for query, each in made.queries.items()}
    return made.model_copy(update={"stages": (stage,), "queries": facts})


def material(tmp_path: Path, store: Store) -> Material:
    a = with_gold("A", [1.0, 0.0], [{"d1": 1, "d2": 50}, {"d3": 30}])
    b = with_gold("B", [0.5, 0.8], [{"d1": 200, "d2": 2}, {"d3": 1}])
    return Material(Runtime(store=store), results=write_records([a, b], tmp_path / "results"))


def test_an_oracle_gives_each_query_to_the_better_system(tmp_path: Path, store: Store) -> None:
    section = complementarity(material(tmp_path, store))
    a, b, best, oracle, gain, fusion, *counts = section.tables[0].rows[0]
    assert (a, b, best, oracle.value, gain) == ("A", "B", 65.0, 90.0, 25.0)
    assert counts == [0, 1, 2, 1]
    assert 80 < fusion.value < 81  # both of the first query's, one of two of the second's
    assert [list(row) for row in section.tables[1].rows] == [["A", 4, 1, 1], ["B", 4, 2, 2]]


def test_every_slice_has_a_figure_for_every_system(tmp_path: Path, store: Store) -> None:
    tables = {table.name: table for table in query_slices(material(tmp_path, store)).tables}
    assert tables["slices-body-system"].heads == ("slice", "queries", "A", "B")
    assert len(tables["slices-body-system"].rows) == 2


def test_the_hardest_slice_is_that_of_the_system_that_is_best_over_all(tmp_path: Path, store: Store) -> None:
    def points(easy: float, hard: float) -> list[float]:
        return [easy] * 8 + [hard] * 6

    made = [record("A", "Biology", points(0.9, 0.3)), record("B", "Biology", points(0.2, 0.8))]
    facts = {f"q{number}": {"body_system": "Skin" if number < 8 else "Nerves"} for number in range(14)}
    made = [
        each.model_copy(update={"queries": {q: fact.model_copy(update=facts[q]) for q, fact in each.queries.items()}})
        for each in made
    ]
    section = query_slices(Material(Runtime(store=store), results=write_records(made, tmp_path / "results")))
    assert section.lead == "Hardest for the best system, A: Nerves (body-system, 6 queries), with 30.0 points."
