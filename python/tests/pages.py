"""The Python that README, docs/ and the notebooks show, for tests that run it and those that check its types."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def blocks(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


WITH_BLOCKS = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if blocks(page)]


def cells(notebook):
    """The code cells of a notebook."""
    return [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def programs():
    """Each page's blocks, each notebook's cells and each example as one program, by a name for it."""
    made = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("*.py"))}
    made |= {page.stem.lower(): "\n".join(blocks(page)) for page in WITH_BLOCKS}
    made |= {notebook.stem: "\n".join("".join(cell["source"]) for cell in cells(notebook)) for notebook in NOTEBOOKS}
    return {re.sub(r"\W", "_", name): text for name, text in made.items()}
