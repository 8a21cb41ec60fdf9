#!/usr/bin/env python3
"""Checks an executed notebook and prints the text of its outputs; checks the notebooks of tools/ before execution.

executed.py NOTEBOOK                  no cell failed, the report is shown, progress is printed in few lines
executed.py --sources NOTEBOOK...     five cells of code without outputs, which differ in the first one only
"""
import json
import sys


def code_cells(path):
    with open(path, encoding="utf-8") as file:
        return [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]


def source(cell):
    return "".join(cell["source"])


def check(condition, text):
    if not condition:
        sys.exit(text)


def check_sources(paths):
    notebooks = [code_cells(path) for path in paths]
    for path, cells in zip(paths, notebooks):
        check(len(cells) == 5, f"{path}: {len(cells)} cells of code, not 5")
        check(not any(cell["outputs"] for cell in cells), f"{path} contains outputs")
        for other in notebooks:
            check([source(cell) for cell in cells[1:]] == [source(cell) for cell in other[1:]], f"{path}: another cell 2 to 5")


def check_executed(path):
    cells = code_cells(path)
    for number, cell in enumerate(cells, 1):
        check(cell["execution_count"], f"cell {number} was not executed")
        check(not any(output["output_type"] == "error" for output in cell["outputs"]), f"cell {number} failed")
    check("UserWarning" not in json.dumps(cells), "Python warns")
    texts = ["".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream") for cell in cells]
    check("<iframe" in json.dumps(cells[4]["outputs"]), "the report is not shown")
    training = texts[3]
    check("\r[" not in training, "the notebook has a progress bar")
    check(len(training.splitlines()) < 100, f"training wrote {len(training.splitlines())} lines")
    check("epoch" in training, "training shows no progress")
    print("\n".join(texts))


if __name__ == "__main__":
    if sys.argv[1] == "--sources":
        check_sources(sys.argv[2:])
    else:
        check_executed(sys.argv[1])
