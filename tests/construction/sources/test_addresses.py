"""Two ways to write an address are one address."""

import pytest

from r2med.construction.sources.addresses import normalised


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://www.x.org/a/", "https://x.org/a#part"),
        ("https://en.m.wikipedia.org/wiki/Crohn%27s_disease", "https://en.wikipedia.org/wiki/Crohn's_disease"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC1/", "https://pmc.ncbi.nlm.nih.gov/articles/PMC1"),
        ("https://dx.doi.org/10.1/x", "https://doi.org/10.1/x"),
        ("https://X.org/a.html", "https://x.org/a"),
    ],
)
def test_they_are_the_same(one, other):
    assert normalised(one) == normalised(other) != ""


def test_other_pages_differ_and_what_is_none_is_empty():
    assert normalised("https://x.org/a?id=1") != normalised("https://x.org/a?id=2")
    assert normalised("https://x.org/A") != normalised("https://x.org/a")
    assert normalised("no address") == normalised("http://[") == ""
