"""Images with classes and images with masks: arrays as IDX, PNG and NPY files, predictions as arrays."""
import pathlib
import struct
import zlib
from typing import Any, Dict, List, Mapping, Optional

import numpy as np

from ._tables import Get, cell, checked, fail, fractions, problem, read_classes, write_csv


def _check(images: Any, what: str) -> List[np.ndarray]:
    """The images [H, W] or [H, W, C] of an array [N, ...] or a sequence of arrays; all uint8."""
    if isinstance(images, np.ndarray) and images.ndim not in (3, 4):
        raise fail(f"{what}: shape {images.shape}; expected [N, H, W] or [N, H, W, 3]")
    arrays = list(map(np.asarray, images))
    for i, image in enumerate(arrays):
        if image.dtype != np.uint8:
            raise fail(
                f"{what}[{i}]: {image.dtype}; images are uint8, 0 to 255: values from 0 to 1 become such by "
                "(255 * images).round().astype(np.uint8)"
            )
        if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
            raise fail(f"{what}[{i}]: shape {image.shape}; expected [H, W], [H, W, 1] or [H, W, 3]")
    return arrays


def write_idx(path: pathlib.Path, array: np.ndarray) -> None:
    """An array of bytes in the format of MNIST."""
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    with open(path, "wb") as file:
        file.write(head)
        file.write(np.ascontiguousarray(array, dtype=np.uint8).tobytes())


def write_png(path: pathlib.Path, image: np.ndarray) -> None:
    """An image [H, W] (grey), [H, W, 1] or [H, W, 3] of uint8, lightly compressed."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = image.shape[:2]
    rows = np.zeros((height, 1 + image.size // max(height, 1)), np.uint8)  # each begins with 0: no filter
    rows[:, 1:] = image.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if image.size == 3 * height * width else 0, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + chunk(b"IEND", b"")
    )


def _are_bytes(labels: np.ndarray) -> bool:
    """Whether an IDX file can hold these labels."""
    return labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() <= 255


def _folder_of(label: Any) -> str:
    """The folder of a class."""
    name = cell(label)
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise fail(f"labels: '{name}' cannot name a class: its images are stored in a folder of that name")
    return name


# --- images with classes


def _write_table(folder: pathlib.Path, parts: Mapping, made: Dict[str, str], label_column: str) -> Dict[str, str]:
    """Images with numbers or several labels: files, and a table of each part."""
    for name, part in parts.items():
        files = [f"{name}{i:08d}.png" for i in range(len(part["images"]))]
        for file, image in zip(files, _check(part["images"], "images")):
            write_png(folder / file, image)
        write_csv(folder / f"{name}.csv", ["image", label_column], zip(files, map(cell, part["labels"])))
    return {"data.path": str(folder), "data.image_column": "image", "data.image_folder": "", **made}


class Classes:
    @staticmethod
    def write_training(folder: pathlib.Path, data: Mapping, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
        parts = {name: part for name, part, _ in checked(data, validation, "images", "images", "labels")}
        if problem(get) != "single_label":
            return _write_table(folder, parts, fractions(validation, get), get("data.label_column") or "label")
        for part in parts.values():
            if np.ndim(part["labels"]) != 1:
                raise fail(f"labels: shape {np.shape(part['labels'])}; expected [N], a class for each image")
        labels = {name: np.asarray(part["labels"]) for name, part in parts.items()}
        are_bytes = all(isinstance(part["images"], np.ndarray) and _are_bytes(labels[name]) for name, part in parts.items())
        for name, part in parts.items():
            images = _check(part["images"], "images")
            if are_bytes:
                write_idx(folder / f"{name}-images", part["images"])
                write_idx(folder / f"{name}-labels", labels[name])
                continue
            for i, (image, label) in enumerate(zip(images, labels[name])):
                place = folder / name / _folder_of(label)
                place.mkdir(parents=True, exist_ok=True)
                write_png(place / f"{i:08d}.png", image)
        return {"data.path": str(folder), **fractions(validation, get)}

    @staticmethod
    def write_inputs(folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        if not isinstance(inputs, np.ndarray):
            return Masks.write_inputs(folder, inputs, get)
        _check(inputs, "images")
        write_idx(folder / "test-images", inputs)
        return folder

    read = staticmethod(read_classes)


# --- images with masks


def read_masks(folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> Any:
    """The masks in ID.npy, by name: bool, or the probabilities. An array [N, H, W] where all have one size."""
    found = [np.load(path) for path in sorted(folder.glob("*.npy"))]
    if not probabilities:
        threshold = float(get("model.threshold"))
        found = [array.astype(np.float64) >= threshold for array in found]
    return np.stack(found) if len({array.shape for array in found}) == 1 else found


def _has_classes(get: Get) -> bool:
    """Whether the values of masks are classes."""
    return get("data.classes") != "none" or bool(get("data.labels"))


def _mask_values(mask: Any, place: str, classes: bool) -> np.ndarray:
    """The values of a mask's file: 0 and 255, or the classes."""
    values = np.asarray(mask)
    if not classes:
        return np.where(values, 255, 0).astype(np.uint8)
    if values.dtype.kind not in "iu" or (values.size and (values.min() < 0 or values.max() > 255)):
        raise fail(f"{place}: {values.dtype}; classes are whole numbers from 0, and 255 where a pixel has no label")
    return values.astype(np.uint8)


def _read_ids(path: pathlib.Path) -> np.ndarray:
    """The ids [H, W] of a PNG file as cleat writes it: a palette, rows without a filter."""
    data, at, parts = path.read_bytes(), 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        parts[kind] = parts.get(kind, b"") + data[at + 8 : at + 8 + size]
        at += 12 + size
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + width)
    if rows[:, 0].any():
        raise fail(f"{path}: rows with a filter")
    return rows[:, 1:].copy()


def read_ids(folder: pathlib.Path) -> Any:
    """The classes in ID.png, by name: an array [N, H, W] of uint8 where all have one size."""
    found = [_read_ids(path) for path in sorted(folder.glob("*.png"))]
    return np.stack(found) if len({array.shape for array in found}) == 1 else found


class Masks:
    @staticmethod
    def write_training(folder: pathlib.Path, data: Mapping, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
        for name in ("images", "masks"):
            (folder / name).mkdir()
        for split, part, count in checked(data, validation, "masks", "images", "masks"):
            for i, (image, mask) in enumerate(zip(_check(part["images"], "images"), part["masks"])):
                if np.asarray(mask).shape != image.shape[:2]:
                    raise fail(f"masks[{i}]: shape {np.asarray(mask).shape}, but its image has {image.shape[:2]}")
                write_png(folder / "images" / f"{split}{i:08d}.png", image)
                values = _mask_values(mask, f"masks[{i}]", _has_classes(get))
                write_png(folder / "masks" / f"{split}{i:08d}.png", values)
            if split != "train":
                (folder / f"{split}.txt").write_text("".join(f"{split}{i:08d}\n" for i in range(count)))
        return {"data.path": str(folder), **fractions(validation, get)}

    @staticmethod
    def write_inputs(folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        for i, image in enumerate(_check(inputs, "images")):
            write_png(folder / f"{i:08d}.png", image)
        return folder

    @staticmethod
    def read(folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> Any:
        is_ids = _has_classes(get) and not probabilities
        return read_ids(folder) if is_ids else read_masks(folder, inputs, get, probabilities)


# --- maps over time


def _save_stacks(folder: pathlib.Path, prefix: str, frames: Any) -> int:
    for i, stack in enumerate(frames):
        stack = np.ascontiguousarray(stack)
        if stack.ndim != 4:
            raise fail(f"frames[{i}]: shape {stack.shape}; expected [T, C, H, W]")
        np.save(folder / f"{prefix}{i:08d}.npy", stack)
    return len(frames)


class Maps:
    @staticmethod
    def write_training(folder: pathlib.Path, data: Mapping, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
        for split, part, count in checked(data, validation, "maps", "frames", "masks"):
            _save_stacks(folder, split, part["frames"])
            for i, mask in enumerate(part["masks"]):
                np.save(folder / f"{split}{i:08d}_mask.npy", np.ascontiguousarray(mask))
            if split != "train":
                (folder / f"{split}.txt").write_text("".join(f"{split}{i:08d}\n" for i in range(count)))
        of_grids = {"data.inputs": "", "data.target": "", "data.val_days": "none", "data.test_days": "none"}
        return {"data.path": str(folder), **of_grids, **fractions(validation, get)}

    @staticmethod
    def write_inputs(folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        _save_stacks(folder, "", inputs)
        return folder

    read = staticmethod(read_masks)
