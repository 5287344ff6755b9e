"""The notebook of the docs: it runs in a real kernel from its first cell to its last, and is kept without outputs."""

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "tour.ipynb"


@pytest.mark.slow
def test_every_cell_of_the_notebook_runs_and_shows_tables_and_how_far_it_is(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 5
    assert not any(cell.outputs or cell.execution_count for cell in code)
    frame = nbformat.v4.new_code_cell("results.to_pandas()")
    notebook.cells.append(frame)
    seen: list[str] = []

    class Client(nbclient.NotebookClient):  # type: ignore[misc, name-defined]
        def process_message(self, message, *rest):  # type: ignore[no-untyped-def]
            if message["msg_type"] == "update_display_data":
                seen.append(message["content"]["data"]["text/html"])
            return super().process_message(message, *rest)

    Client(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [
        output.data.get("text/html", "")
        for cell in code
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert len(shown) >= 3 and all(html.startswith("<table>") for html in shown)
    assert "demo/MedQA-Diag · bm25" in seen and seen[-1] == ""
    assert any(line.endswith(" documents") for line in seen)
    assert 'class="dataframe"' in frame.outputs[0].data["text/html"]
