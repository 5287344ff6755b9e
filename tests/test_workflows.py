"""Workflows, hooks and least shares agree with the rest of the repository; `make check` lints the workflows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.room_coverage import LEAST_SHARE, VARIABLE, Measurement, shares, too_low, without_tests

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_tests_run_on_every_python_and_machine_that_is_promised() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert matrix["machine"] == ["ubuntu-latest", "ubuntu-24.04-arm", "macos-latest"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    assert matrix["python"] == named


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_makes_what_the_makefile_has_and_pins_its_actions_by_digest(workflow: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
    made = {target for step in steps(workflow) for target in re.findall(r"^make (\S+)", step.get("run", ""))}
    assert made <= targets
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used and all(re.fullmatch(r"(actions|pypa)/[\w-]+@[0-9a-f]{40}", action) for action in used)
    assert "never run where this repository was written" in workflow.read_text(encoding="utf-8")


def test_hooks_lint_with_the_versions_of_the_checks() -> None:
    pinned = re.findall(r"(?:ruff|mypy)==[\d.]+", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [local] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    hooks = {hook["id"]: hook for hook in local["hooks"]}
    assert set(hooks) == {"ruff-check", "ruff-format", "mypy"}
    for name in ("ruff-check", "ruff-format"):
        [version] = hooks[name]["additional_dependencies"]
        assert version in pinned
    assert hooks["mypy"]["entry"] == ".venv-test/bin/mypy"  # the pinned one, which `make check` installed


@pytest.mark.parametrize("form", ["bug.yml", "idea.yml"])
def test_a_form_for_issues_has_fields_with_labels(form: str) -> None:
    content = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE" / form).read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(content)
    fields = [field for field in content["body"] if field["type"] != "markdown"]
    assert fields and all(field["attributes"]["label"] and field["id"] for field in fields)


def test_a_room_whose_tests_never_ran_is_below_its_least_share() -> None:
    files = {
        "__init__.py": (0, 9),
        "evaluation/measure/scores.py": (95, 100),
        "construction/steps/mining.py": (2, 100),
        "construction/pipeline.py": (8, 100),
    }
    found = shares((Path(name), *lines) for name, lines in files.items())
    assert found == {"construction": 5, "evaluation/measure": 95}
    assert too_low(found) == [f"construction: the tests ran 5 % of its lines, and at least {LEAST_SHARE} % must"]


def test_a_room_without_a_passed_test_of_its_own_is_named_though_other_tests_run_its_lines(tmp_path: Path) -> None:
    outcomes = {"tests/data/test_a.py::test_x[1]": "skipped", "tests/publication/packs/test_b.py::test_y": "passed"}
    measurement = Measurement(tmp_path)
    for test, outcome in {**outcomes, "tests/foundation/store/test_c.py::test_z": "failed"}.items():
        report = pytest.TestReport(test, ("", 0, ""), {}, outcome, None, "call")  # type: ignore[arg-type]
        measurement.pytest_runtest_logreport(report)
    measurement.pytest_sessionfinish()
    assert without_tests(["data", "publication/packs", "foundation/store"], tmp_path) == [
        "data: no test in tests/data passed",
        "foundation/store: no test in tests/foundation/store passed",
    ]


def test_make_test_all_measures_every_room_and_reads_the_least_shares() -> None:
    assert f"{VARIABLE}=$(rooms) " in MAKEFILE
    assert "tests/support/room_coverage.py $(rooms)" in MAKEFILE
