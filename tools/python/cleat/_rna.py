"""RNA chains: sequences and coordinates as CSV and FASTA files, predictions as arrays."""
import pathlib
from typing import Any, Dict, List, Mapping, Optional

import numpy as np

from ._tables import Get, cell, checked, fail, fractions, read_csv, write_csv


class Chains:
    @staticmethod
    def write_training(folder: pathlib.Path, data: Mapping, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
        sequences, atoms = [], []
        for split, part, _ in checked(data, validation, "RNA", "sequences", "coordinates"):
            for i, (sequence, coordinates) in enumerate(zip(part["sequences"], part["coordinates"])):
                name, array = f"{split}{i}", np.asarray(coordinates, dtype=np.float64)
                if array.shape != (len(sequence), 3):
                    raise fail(f"coordinates[{i}]: shape {array.shape}; its sequence has {len(sequence)} residues: "
                               f"expected [{len(sequence)}, 3]")  # fmt: skip
                sequences.append([name, sequence] + ([split] if validation is not None else []))
                for k, (letter, atom) in enumerate(zip(sequence, array.tolist()), 1):
                    atoms.append([f"{name}_{k}", letter, k, *map(cell, atom)])
        header = ["target_id", "sequence"] + (["split"] if validation is not None else [])
        write_csv(folder / "sequences.csv", header, sequences)
        write_csv(folder / "labels.csv", ["ID", "resname", "resid", "x_1", "y_1", "z_1"], atoms)
        return {"data.path": str(folder), **fractions(validation, get)}

    @staticmethod
    def write_inputs(folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        write_csv(folder / "inputs.csv", ["target_id", "sequence"], ([f"s{i}", text] for i, text in enumerate(inputs)))
        return folder / "inputs.csv"

    @staticmethod
    def read(folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> List[np.ndarray]:
        atoms: Dict[str, List[List[float]]] = {}
        for row in read_csv(folder / "predictions.csv")[1:]:
            atoms.setdefault(row[0].rsplit("_", 1)[0], []).append([float(cell or "nan") for cell in row[3:6]])
        return [np.array(chain) for chain in atoms.values()]
