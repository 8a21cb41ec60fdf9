"""Texts with classes, tagged sentences, texts with masked tokens: lists as CSV and CoNLL files, predictions as lists and
arrays."""
import os
import pathlib
from typing import Any, Dict, List, Mapping, Optional

from ._tables import Get, fail, fractions, need, read_classes, read_csv, same_count, splits, write_csv


class _Table:
    @staticmethod
    def write_inputs(folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        """Texts to predict, numbered from 0 if there is a column for it."""
        header = [get("data.text_column")] + ([get("data.id_column")] if get("data.id_column") else [])
        write_csv(folder / "inputs.csv", header, ([text, i][: len(header)] for i, text in enumerate(inputs)))
        return folder / "inputs.csv"


def _settings(folder: pathlib.Path, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
    """Settings of a folder whose files have the names that the reader looks for."""
    files = {f"data.{split}_file": "" for split in ("train", "val", "test")}
    return {"data.path": str(folder), **files, **fractions(validation, get)}


class Texts(_Table):
    """Keys: texts [N] (str), labels [N]."""

    @staticmethod
    def write_training(folder: pathlib.Path, data: Mapping, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
        header = [get("data.text_column"), get("data.label_column")]
        for split, part in splits(data, validation).items():
            need(part, f"{split} data of texts", ["texts", "labels"])
            same_count(f"{split} data", texts=len(part["texts"]), labels=len(part["labels"]))
            write_csv(folder / f"{split}.csv", header, zip(part["texts"], part["labels"]))
        return {"data.id_column": "", **_settings(folder, validation, get)}

    @staticmethod
    def read(folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> Any:
        return read_classes(folder, probabilities)


class Masked(_Table):
    """Key: texts [N] (str), to predict with mask tokens in them."""

    @staticmethod
    def write_training(folder: pathlib.Path, data: Mapping, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
        for split, part in splits(data, validation).items():
            need(part, f"{split} data of texts", ["texts"])
            same_count(f"{split} data", texts=len(part["texts"]))
            write_csv(folder / f"{split}.csv", [get("data.text_column")], ([text] for text in part["texts"]))
        return {"data.id_column": "", **_settings(folder, validation, get)}

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
    """Keys: sentences (lists of words), tags (lists of BIO tags: O, B-place, I-place)."""

    @staticmethod
    def write_training(folder: pathlib.Path, data: Mapping, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
        for split, part in splits(data, validation).items():
            need(part, f"{split} data of sentences", ["sentences", "tags"])
            same_count(f"{split} data", sentences=len(part["sentences"]), tags=len(part["tags"]))
            _write_conll(folder / f"{split}.conll", part["sentences"], part["tags"])
        return _settings(folder, validation, get)

    @staticmethod
    def write_inputs(folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        _write_conll(folder / "inputs.conll", inputs, ([("O")] * len(words) for words in inputs))
        return folder / "inputs.conll"

    @staticmethod
    def read(folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> List[List[str]]:
        sentences = (folder / "predictions.conll").read_text(encoding="utf-8").strip("\n").split("\n\n")
        return [[line.rsplit("\t", 1)[1] for line in sentence.split("\n")] for sentence in sentences]
