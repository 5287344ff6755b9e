"""Files in the forms in which authors of rerankers keep their prompts, with words of our own."""

from pathlib import Path

SINGLE_TURN = """\
method: "singleturn_listwise"
system_message: "You sort things"
prefix: |
  Here come {num} things for: {query}.
body: |
  [{rank}] {candidate}
suffix: |-
  Sort for: {query}.
  All {num}, as [] > [].
"""
WITH_SCORES = SINGLE_TURN.replace("  [{rank}] {candidate}\n", "  [{rank}] {candidate}\n  score of [{rank}]: {score}\n")
MANY_TURNS = """\
method: "multiturn_listwise"
system_message: "You sort things."
prefix_user: |-
  Here come {num} things.
  They are for: {query}.
prefix_assistant: "Send the things."
body_user: "[{rank}] {candidate}"
body_assistant: "Got thing [{rank}]."
suffix_user: "Sort {num} things for: {query}."
"""
REASONRANK_TOML = """\
system_prompt = "You sort."
system_prompt_reasoning = "You think, then sort."
"""
REASONRANK_PY = """\
raise SystemExit("this file must not be run")


def add_prefix_prompt(promptmode, query, num):
    if promptmode == "a":
        return f"Here come {num} things for: {query}.\\n"
    return f"Other words for {query}"


def add_post_prompt(promptmode, query, num):
    if promptmode == "b":
        example_ordering = "[2] > [1]"
        return f"Sort {num} for {query}, as {example_ordering}."
    elif promptmode == "c":
        example_ordering = "[2] > [1]"
        return f"Never {num} mind {query}."
    example_ordering = "[2] > [1]"
    return f"Sort {num} for {query} in tags, as {example_ordering}."
"""
RANK_R1 = """\
prompt_system = "You pick one."
prompt_user = \'\'\'For "{query}", pick from:
{docs}
Answer <answer>[3]</answer>.\'\'\'
"""
SETWISE = '''\
class Ranker:
    """A class with a docstring of several words."""

    def compare(self, query, docs):
        """Another docstring of several words."""
        passages = "\\n\\n".join([f'Passage {self.NAMES[i]}: "{doc.text}"' for i, doc in enumerate(docs)])
        return f'For "{query}", which one?\\n\\n' + passages + "\\n\\nOnly the label:"
'''
RANK_K = '''\
rank_k_prompt = """
Sort the things, ties allowed.

Query: {query}

{docs}
"""
'''
REARANK = '''\
def create_permutation_instruction_rearank(item=None):
    query, num = item["query"], len(item["hits"])
    instruction = (
        f"Things will come for {query}. "
        f"Sort {num} of them."
    )
    messages = [
        {"role": "system", "content": "You sort well."},
        {"role": "user", "content": instruction},
        {"role": "assistant", "content": "Send the things."},
    ]
    for rank, hit in enumerate(item["hits"]):
        content = hit["content"].replace("Title: Content: ", "")
        messages.append({"role": "user", "content": f"[{rank}] {content[:400]}"})
        messages.append({"role": "assistant", "content": f"Got thing [{rank}]."})
    messages.append({"role": "user", "content": f"""Now sort for "{query}".
            In <think> think, in <answer> answer."""})
    return messages
'''
GROUPRANK = """\
class GroupReranker:
    def __init__(self, model_path):
        self.group_system_prompt = '''Score the things.
'''
        self.group_user_prompt = '''Here are {TOPK} things for
{QUERY}

{PASSAGES}
Answer as
{{"[1]": 5, "[2]": 3}}
'''
"""
RANK1 = """\
class rank1:
    def return_prompt(self, query, doc_content, prompt) -> str:
        query = prompt.replace("FILL_QUERY_HERE", query) if prompt else query
        return "Is it of use? " \\
                "Say true or false.\\n" \\
                f"Query: {query}\\n" \\
                f"Passage: {doc_content}\\n" \\
                "<think>"
"""
RETRO = '''\
class Reranker:
    def __init__(self, query_type="query", doc_type="document", relevance_definition=None):
        if relevance_definition is None:
            relevance_definition = f"A {doc_type} counts if it helps with the {query_type}."
        self.prompt_template = self.get_prompt_template()

    def get_prompt_template(self):
        prompt_template = """\\
Rule: {relevance_definition}
Query ({query_type}): {query}
Document ({doc_type}): {doc}
<score>50</score>
"""
        return prompt_template
'''
_PACKAGE = "rank_llm/rerank/prompt_templates"
FILES = {
    "rankzephyr": {f"{_PACKAGE}/rank_zephyr_template.yaml": SINGLE_TURN},
    "first": {f"{_PACKAGE}/rank_zephyr_alpha_template.yaml": SINGLE_TURN},
    "insertrank": {f"{_PACKAGE}/insert_rank_template.yaml": WITH_SCORES},
    "rankgpt": {f"{_PACKAGE}/rank_gpt_template.yaml": MANY_TURNS},
    "reasonrank": {"listwise_prompt_r1.toml": REASONRANK_TOML, "utils.py": REASONRANK_PY},
    "reasonrank-8b": {"listwise_prompt_r1.toml": REASONRANK_TOML, "utils.py": REASONRANK_PY},
    "rank-r1": {"Rank-R1/prompts/prompt_setwise-R1.toml": RANK_R1},
    "rank-r1-v2": {"Rank-R1/prompts/prompt_setwise-R1-v0.2.toml": RANK_R1},
    "setwise": {"llmrankers/setwise.py": SETWISE},
    "rank-k-32b": {"rerank.py": RANK_K},
    "rearank-7b": {"rank_gpt.py": REARANK},
    "grouprank": {"Reranker/rerank_groupwise.py": GROUPRANK},
    "rank1": {"rank1.py": RANK1},
    "retro-star": {"Retro-star/evaluation/bright/reranker_sglang.py": RETRO},
}
"""Name of a prompt -> its files."""


def clone_of(name: str, folder: Path) -> Path:
    """Write the files of a prompt into a folder, as a clone of the authors' repository has them."""
    for file, text in FILES[name].items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
