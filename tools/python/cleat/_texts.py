"""Texts with classes, tagged sentences, texts with masked tokens: lists as CSV and CoNLL files, predictions as lists and
arrays."""
import csv
import os
import pathlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._tables import Get, cell, checked, fail, fractions, read_classes, read_csv, write_csv


def settings(folder: pathlib.Path, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
    """Settings of a folder whose files have the names that the reader looks for."""
    files = {f"data.{split}_file": "" for split in ("train", "val", "test")}
    return {"data.path": str(folder), **files, **fractions(validation, get)}


class Texts:
    KEYS: Tuple[str, ...] = ("texts", "labels")

    @classmethod
    def write_training(cls, folder: pathlib.Path, data: Any, validation: Any, get: Get) -> Dict[str, str]:
        header = [get(f"data.{key[:-1]}_column") for key in cls.KEYS]
        for split, part, _ in checked(data, validation, "texts", *cls.KEYS):
            write_csv(folder / f"{split}.csv", header, zip(*(map(cell, part[key]) for key in cls.KEYS)), quoting=csv.QUOTE_ALL)
        return {"data.id_column": "", **settings(folder, validation, get)}

    @staticmethod
    def write_inputs(folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        """Texts to predict, numbered from 0 if there is a column for it."""
        header = [get("data.text_column")] + ([get("data.id_column")] if get("data.id_column") else [])
        rows = ([cell(text), i][: len(header)] for i, text in enumerate(inputs))
        write_csv(folder / "inputs.csv", header, rows, quoting=csv.QUOTE_ALL)
        return folder / "inputs.csv"

    read = staticmethod(read_classes)


class Masked(Texts):
    """Key: texts [N] (str), to predict with mask tokens in them."""

    KEYS = ("texts",)

    @staticmethod
    def read(folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> Any:
        """For each text a list with the token at each mask, or with the most probable ones and their probabilities."""
        header, *rows = read_csv(folder / "predictions.csv")
        first = 0 if get("data.id_column") else 1
        found: Dict[str, List[Any]] = {}
        if not isinstance(inputs, (str, os.PathLike)):
            found = {str(first + i): [] for i in range(len(inputs))}  # a text may have no mask token
        for row in rows:
            tokens = [(row[at], float(row[at + 1])) for at in range(2, len(header), 2) if row[at + 1]]
            found.setdefault(row[0], []).append(tokens if probabilities else tokens[0][0])
        return list(found.values())


def _write_conll(path: pathlib.Path, sentences: Any, tags: Any) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        for i, (words, names) in enumerate(zip(sentences, tags)):
            if isinstance(words, str) or len(words) != len(names) or not len(words):
                raise fail(f"sentences[{i}]: a sentence is a list of words, with a tag for each of them")
            for word, name in zip(words, names):
                if not word.strip() or any(blank in word for blank in "\t\r\n"):
                    raise fail(f"sentences[{i}]: the word {word!r} is empty, or has a tab or a line break in it")
                file.write(f"{word}\t{name}\n")
            file.write("\n")


class Tags:
    @staticmethod
    def write_training(folder: pathlib.Path, data: Mapping, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
        for split, part, _ in checked(data, validation, "sentences", "sentences", "tags"):
            _write_conll(folder / f"{split}.conll", part["sentences"], part["tags"])
        return settings(folder, validation, get)

    @staticmethod
    def write_inputs(folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        _write_conll(folder / "inputs.conll", inputs, ([("O")] * len(words) for words in inputs))
        return folder / "inputs.conll"

    @staticmethod
    def read(folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> List[List[str]]:
        sentences = (folder / "predictions.conll").read_text(encoding="utf-8").strip("\n").split("\n\n")
        return [[line.rsplit("\t", 1)[1] for line in sentence.split("\n")] for sentence in sentences]
