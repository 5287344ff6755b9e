"""A dataset that tries to break whoever shows it: markup, links, turned reading order, endless lines, awkward ids."""

from pathlib import Path

from support.datasets import r2med_folder, write_jsonl

SCRIPT = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title='hacked'\">"
TURNED = "fever \u202eedirrevo\u202c and \u2066isolated"
ENDLESS = "fever-" + "x" * 50_000
COPIED = "Fever with a rash: the text of the one that is judged."

DOCUMENTS = [
    {"id": "__proto__", "text": f"Fever in the prototype. {SCRIPT}"},
    {"id": "constructor", "text": f"javascript:alert(1) and fevers. {TURNED}"},
    {"id": "<b>bold</b>", "text": "A fever is written in <b>bold</b> &amp; &lt;entities&gt;."},
    {"id": "javascript:alert(1)", "text": "rash\u2028rash\u2029fever\x85 😀 naïve"},
    {"id": "endless", "text": ENDLESS},
    {"id": "long", "text": "Nothing here. " * 900 + "Here are fever, rash and chills. " + "Nothing here. " * 900},
    {"id": "copy", "text": COPIED},
    {"id": "judged", "text": COPIED},
    {"id": "white space\u202e", "text": "chills and fever"},
    {"id": "empty", "text": ""},
    *({"id": f"d{i}", "text": f"fever number {i} " + "word " * i} for i in range(25)),
]
QUERIES = [
    {"id": "__proto__", "text": f"Why fever? {SCRIPT} {TURNED}", "answer": SCRIPT, "body_system": "<i>Other</i>"},
    {"id": "constructor", "text": "rash with fever and chills", "answer": TURNED, "body_system": ""},
    {"id": "toString", "text": "nothing-matches-this", "answer": "", "body_system": ""},
    {"id": "hasOwnProperty", "text": "fever " + "y" * 50_000, "answer": "none", "body_system": ""},
]
QRELS = [
    {"q_id": "__proto__", "p_id": "__proto__", "score": 1},
    {"q_id": "__proto__", "p_id": "constructor", "score": 2},
    {"q_id": "constructor", "p_id": "judged", "score": 1},
    {"q_id": "constructor", "p_id": "d3", "score": 0},
    {"q_id": "toString", "p_id": "empty", "score": 1},
    {"q_id": "hasOwnProperty", "p_id": "long", "score": 1},
    {"q_id": "hasOwnProperty", "p_id": "endless", "score": 1},
]
GENERATED = [
    {"id": "__proto__", "text": "", "hy_doc": f"Prototypes and entities. {SCRIPT}"},
    {"id": "constructor", "text": "", "hy_doc": "The text of the one that is judged: rashes."},
    {"id": "hasOwnProperty", "text": "", "hy_doc": "Chills\u2028and a rash."},
]


def hostile_folder(root: Path) -> Path:
    """Write the dataset, with texts that were generated for all queries but one."""
    write_jsonl(root / "hyde" / "author" / "query_with_hydoc.jsonl", GENERATED)
    return r2med_folder(root, DOCUMENTS, QUERIES, QRELS)
