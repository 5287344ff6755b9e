import io
import json
import zipfile

import pytest

from r2med.foundation.core.errors import UserError
from support.builds import built

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<posts>\n'
ROWS = [
    '<row Id="1" PostTypeId="1" AcceptedAnswerId="3" Score="9" Title="Why does &amp;lt; K matter?"'
    ' Body="&lt;p&gt;Potassium is low.&lt;/p&gt;&lt;p&gt;Why?&lt;/p&gt;" ContentLicense="CC BY-SA 3.0" />',
    '<row Id="2" PostTypeId="2" ParentId="1" Score="30" '
    'Body="&lt;a href=&quot;https://many.org/votes&quot;&gt;x&lt;/a&gt;" />',
    '<row Id="3" PostTypeId="2" ParentId="1" Score="2" Body="&lt;p&gt;Because of &lt;a href=&quot;https://en.wikipedia.org/'
    "wiki/Hypokalemia&quot;&gt;this&lt;/a&gt; and &lt;a href=&quot;https://biology.stackexchange.com/q/7&quot;&gt;that"
    '&lt;/a&gt;.&lt;/p&gt;" />',
    '<row Id="4" PostTypeId="1" Score="1" Title="Few votes" Body="x" />',
    '<row Id="5" PostTypeId="2" ParentId="4" Score="1" Body="&lt;a href=&quot;https://a.org&quot;&gt;x&lt;/a&gt;" />',
    '<row Id="6" PostTypeId="1" Score="1" Title="No link" Body="x" />',
    '<row Id="7" PostTypeId="2" ParentId="6" Score="50" Body="see https://a.org" />',
]
DUMP = HEAD + "\n".join(ROWS) + "\n</posts>\n"


def test_a_post_goes_on_if_its_accepted_answer_links_outside(tmp_path):
    build = built(tmp_path, ["read-stackexchange(Posts.xml, site=biology.stackexchange.com)"], {"Posts.xml": DUMP})
    [question] = build.items(1)
    assert question.id == "1"
    assert question.text == "Why does < K matter?\nPotassium is low.\nWhy?"
    assert question.answer == "Because of this and that."
    assert question.links == ("https://en.wikipedia.org/wiki/Hypokalemia",)
    assert question.source == "https://biology.stackexchange.com/questions/1"
    assert question.licence == "CC BY-SA 3.0"
    reasons = {left.key: left.reason for left in build.rejected(1)}
    assert reasons == {"4": "no accepted or upvoted answer", "6": "no link to a page outside"}


def test_a_dump_that_was_cut_gives_what_came_before_and_tells_where_it_ends(tmp_path):
    build = built(tmp_path, ["read-stackexchange(Posts.xml)"], {"Posts.xml": DUMP[: DUMP.index('"4"')]})
    assert [question.id for question in build.items(1)] == ["1"]
    [left] = build.rejected(1)
    assert left.reason == "unreadable"
    assert "Posts.xml: line 6, column" in left.note


def test_entities_of_a_dump_are_not_expanded(tmp_path, caplog):
    bomb = '<!DOCTYPE p [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>' + DUMP.removeprefix(HEAD[: HEAD.index("<posts>")])
    with pytest.raises(
        UserError, match=r"read-stackexchange\(Posts.xml\): no questions were read: .* \(1 unreadable\)"
    ):
        built(tmp_path, ["read-stackexchange(Posts.xml)"], {"Posts.xml": bomb})
    assert "declares the entity 'a'" in caplog.text


def test_a_zip_with_a_path_outside_gives_what_is_inside(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../Posts.xml", DUMP)
        archive.writestr("site/Posts.xml", DUMP)
    build = built(tmp_path, ["read-stackexchange(dump.zip)"], {"dump.zip": packed.getvalue()})
    assert [question.id for question in build.items(1)] == ["1"]
    assert "leads outside" in next(left.note for left in build.rejected(1) if left.reason == "unreadable")


def test_the_json_of_the_api_is_read_too(tmp_path):
    answers = [{"answer_id": 8, "score": 6, "body": '<a href="https://a.org/x">x</a>', "is_accepted": False}]
    item = {
        "question_id": 7,
        "title": "T &amp; U",
        "body": "<p>b</p>",
        "score": 3,
        "link": "https://s/7",
        "answers": answers,
    }
    build = built(tmp_path, ["read-stackexchange(page.json)"], {"page.json": json.dumps({"items": [item, 5, {}]})})
    [question] = build.items(1)
    assert (question.id, question.text, question.links) == ("7", "T & U\nb", ("https://a.org/x",))
    assert question.source == "https://s/7"
