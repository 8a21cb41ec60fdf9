#!/usr/bin/env python3
"""Converts a reference trajectory from the old format to the current one, described in src/inspect/verify/golden.h.

    python3 tests/golden/convert.py FILE OUT

A file of the old format describes the model by its metadata `config` (JSON: sizes, and the loss as a sentence) and AdamW by its
metadata `optimizer`; sizes that `config` lacks are extents of its parameters. Its batch is `input`, `target` and, if sequences are
padded, `lengths`. The converted file has the metadata `profile` and `sizes`, and the fields of the family's data under their own
names; parameters, gradients, output and losses are copied. A file that cannot be converted is rejected with the reason and exit
status 1; unused keys of `config` are reported. Needs only the standard library.
"""
import array
import json
import math
import re
import struct
import sys

STAGES = 4  # of a convolutional network, at most
# Settings ("section.key") and sizes (without a section) of a family: key of config ("weights.frame": in a nested object); if config
# lacks it, the parameter and the axis whose extent is the value; if both are missing, the default. None: neither. A file that gives a
# row no value is not of the family.
TEXT = [("model.dropout", None, None, 0), ("model.d_model", "d_model", ("emb.weight", 1), None), ("model.heads", "heads", None, None),
        ("model.layers", "layers", None, None), ("model.d_ff", "d_ff", ("blocks.0.f1.weight", 0), None),
        ("vocabulary", "vocab", ("emb.weight", 0), None)]
CLASSES = [("classes", None, ("head.weight", 0), None)]
SERIES = [("model.dropout", None, None, 0), ("data.lookback", "T", None, 1), ("data.horizon", None, None, 1)]
TERMS = ["pair_distance", "lddt_loss", "frame", "handedness", "bond_length", "bond_angle", "clash", "base_pair", "coordinate"]
SETTING = {"lddt_loss": "lddt"}  # the setting of a term, if its name differs


def mask_rows(heads):
    return [("model.dropout", None, None, 0), ("model.stem_stride", "stem_stride", None, 4), ("data.image_size", "px", None, None),
            ("stage_widths", "dims", None, None), ("stage_heads", heads, None, None), ("stage_reductions", "sr", None, None),
            ("stage_depths", "depth", None, None), ("decoder", "decoder", ("fuse.weight", 0), None)]


MASK_LOSS = [(f"loss.{key}", key, None, None) for key in ("positive_weight", "focal_gamma", "dice")]
TEMPORAL = [(f"model.{key}", key, None, None) for key in ("d_model", "heads", "layers", "d_ff", "features")]


def refuse(reason):
    raise SystemExit(f"{sys.argv[1]}: {reason}")


# --- safetensors: u64 length of the header, the header as JSON, the arrays ---------------------------------------------------


class Array:
    """An array of the file, or a new one: I64 or F32, with `values` as a flat array."""

    def __init__(self, dtype, shape, values):
        self.dtype, self.shape = dtype, list(shape)
        self.values = array.array("q" if dtype == "I64" else "f", values)

    def bytes(self):
        values = array.array(self.values.typecode, self.values)
        if sys.byteorder == "big":
            values.byteswap()
        return values.tobytes()


def read(path):
    """The arrays by name, in the order of the file, and the metadata."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        refuse(error.strerror)
    size = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else len(content)
    try:
        header = json.loads(content[8:8 + size]) if size <= len(content) - 8 else {}
        metadata = header.pop("__metadata__", {})
        entries = [(*entry["data_offsets"], name, entry["dtype"], entry["shape"]) for name, entry in header.items()]
    except (ValueError, AttributeError, KeyError, TypeError):
        entries = []
    if not entries:
        refuse("not a safetensors file, or cut short")
    if "profile" in metadata:
        refuse("has its profile already: nothing to convert")
    data, arrays = content[8 + size:], {}
    for begin, end, name, dtype, shape in sorted(entries):
        if dtype not in ("I64", "F32"):
            refuse(f"the array '{name}' is {dtype}; arrays of the old format are I64 or F32")
        if end - begin != math.prod(shape) * (8 if dtype == "I64" else 4) or end > len(data):
            refuse(f"the array '{name}' does not have the bytes that its shape {shape} needs; the file may be cut short")
        arrays[name] = Array(dtype, shape, [])
        arrays[name].values.frombytes(data[begin:end])
        if sys.byteorder == "big":
            arrays[name].values.byteswap()
    return arrays, metadata


def write(path, arrays, metadata):
    header, at = {"__metadata__": metadata}, 0
    for name, one in arrays.items():
        end = at + len(one.values) * one.values.itemsize
        header[name] = {"dtype": one.dtype, "shape": one.shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for one in arrays.values():
            file.write(one.bytes())


# --- settings and sizes ------------------------------------------------------------------------------------------------------


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Model:
    """The file's description of its model, while one family after the other is tried."""

    def __init__(self, arrays, config):
        self.arrays, self.config = arrays, config
        self.sections, self.sizes, self.used = {}, {}, {"loss", "B", "L", "T", "layout", "stem", "classes"}

    def set(self, to, value):
        section, _, key = to.rpartition(".")
        (self.sections.setdefault(section, {}) if section else self.sizes)[key] = value

    def find(self, key):
        """A number or a list from config, or None."""
        value = self.config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        self.used.add(key.split(".")[0])
        return value if is_number(value) or isinstance(value, list) else None

    def extent(self, parameter, axis):
        found = self.arrays.get("param/" + parameter)
        return found.shape[axis] if found and axis < len(found.shape) else 0

    def set_rows(self, rows):
        for to, key, parameter, default in rows:
            value = self.find(key) if key else None
            if value is None:
                value = (self.extent(*parameter) if parameter else 0) or default
            if value is None:
                return False
            self.set(to, value)
        return True

    def count_blocks(self):
        layers = self.find("layers") or 0
        while self.config.get("layers") is None and self.extent(f"blocks.{layers}.f1.weight", 0):
            layers += 1
        self.set("model.layers", layers)
        return layers > 0

    def read_widths(self):
        """Widths of the layers, from the inputs to the classes or outputs."""
        widths = self.find("widths")
        if not isinstance(widths, list) or len(widths) < 2:
            return False
        self.set("inputs", widths[0])
        self.set("classes" if "cross entropy" in self.config["loss"] else "outputs", widths[-1])
        if widths[1:-1]:
            self.set("hidden", widths[1:-1])
        return True

    def read_stages(self):
        """Blocks of each stage, from config or from the parameters: a stage has twice the channels of the previous one."""
        self.set("model.stem", "large" if (self.find("stem") or self.extent("stem.weight", 2)) == 7 else "small")
        blocks, width, number = self.find("blocks"), self.extent("stem.weight", 0), 1
        if blocks is None:
            blocks = [0]
            while (features := self.extent(f"b{number}.c1.weight", 0)) > 0:
                if number > 1 and features == 2 * width:
                    blocks.append(0)
                elif features != width:
                    return False
                blocks[-1] += 1
                width, number = features, number + 1
        self.set("blocks", blocks)
        return isinstance(blocks, list) and 0 < len(blocks) <= STAGES and blocks[0] > 0


# --- the batch ---------------------------------------------------------------------------------------------------------------


class Batch:
    def __init__(self, arrays):
        self.arrays = arrays
        values = self.array("input")
        if len(values.shape) < 2:
            refuse(f"the array 'input' is {values.shape}; it must be a batch of samples")
        self.size, self.patches = values.shape[:2]
        self.length = values.shape[2 if len(values.shape) == 4 else 1]  # [B, N, T, V]: T
        self.lengths = [self.length] * self.size
        if "lengths" in arrays:
            own = arrays["lengths"]
            if own.dtype != "I64" or own.shape != [self.size]:
                refuse(f"the array 'lengths' is {own.dtype} {own.shape}; it must be I64 [{self.size}]")
            self.lengths = list(own.values)
        for length in self.lengths:
            if not 1 <= length <= self.length:
                refuse(f"a sample's length is {length}; it must be 1 to {self.length}")

    def array(self, name):
        if name not in self.arrays:
            refuse(f"there is no array '{name}'")
        return self.arrays[name]

    def with_one_step(self, name):
        """[B, C] -> [B, 1, C]"""
        one = self.array(name)
        return Array(one.dtype, one.shape if len(one.shape) != 2 else [one.shape[0], 1, one.shape[1]], one.values)

    def channels_last(self):
        """[B, C, H, W] -> [B, H, W, C]"""
        one = self.array("input")
        if len(one.shape) != 4:
            refuse(f"the array 'input' is {one.shape}; images are [B, C, H, W]")
        batch, channels, height, width = one.shape
        values, pixels = array.array(one.values.typecode), height * width
        for image in range(batch):
            first = image * channels * pixels
            for pixel in range(first, first + pixels):
                values.extend(one.values[pixel:pixel + channels * pixels:pixels][:channels])
        return Array(one.dtype, [batch, height, width, channels], values)

    def until_length(self):
        """Labels of tokens: -1 past the end of each sample."""
        one = self.array("target")
        if one.shape[:2] != [self.size, self.length]:
            refuse(f"the array 'target' is {one.shape}; labels of tokens are [{self.size}, {self.length}]")
        return Array(one.dtype, one.shape, [value if i % self.length < self.lengths[i // self.length] else -1
                                            for i, value in enumerate(one.values)])

    def of_positions(self, dtype, value):
        """[B, L]: value(length, position)"""
        return Array(dtype, [self.size, self.length], [value(n, i) for n in self.lengths for i in range(self.length)])

    def means(self):
        """[terms, B]: the weight of a chain is its number of residues or bonds."""
        scale, bonds = {name: [0.0] * self.size for name in TERMS}, sum(self.lengths) - self.size
        scale["coordinate"] = [n / sum(self.lengths) for n in self.lengths]
        scale["bond_length"] = [(n - 1) / max(1, bonds) for n in self.lengths]
        return Array("F32", [len(TERMS), self.size], [value for name in TERMS for value in scale[name]])


def hairpin(length, i):
    """The mirrored position of the chain, if it is more than 4 residues away."""
    other = length - 1 - i
    return other if i < length and abs(other - i) > 4 else -1


FIELDS = {
    "tokens": lambda b: ("tokens", b.array("input")),
    "frames": lambda b: ("frames", b.array("input")),
    "x": lambda b: ("x", b.with_one_step("input")),
    "image": lambda b: ("image", b.channels_last()),
    "coords": lambda b: ("coords", b.array("target")),
    "label": lambda b: ("label", b.array("target")),
    "labels": lambda b: ("labels", b.until_length()),
    "target": lambda b: ("target", b.with_one_step("target")),
    "mask": lambda b: ("mask", b.array("target")),
    "lengths": lambda b: ("lengths", Array("I64", [b.size], b.lengths)),
    "lengths of patches": lambda b: ("lengths", Array("I64", [b.size, b.patches], [n for n in b.lengths for _ in range(b.patches)])),
    "valid": lambda b: ("mask", b.of_positions("F32", lambda length, i: i < length)),
    "known": lambda b: ("mask", b.of_positions("F32", lambda length, i: i < length and i % 7 != 3)),
    "unpaired": lambda b: ("partner", b.of_positions("I64", lambda length, i: -1)),
    "hairpin": lambda b: ("partner", b.of_positions("I64", hairpin)),
    "means": lambda b: ("scale", b.means()),
}

# --- families ----------------------------------------------------------------------------------------------------------------

# Type of the model; text in the sentence on the loss; a key that config must have (None: any); rows of
# settings; a function for settings without a row (None: none); fields.
FAMILIES = [
    ("rna_transformer", ["valid coordinates", "valid neighbours"], None,
     TEXT + [("model.head", None, None, "absolute"), ("model.positions", None, None, "start"), ("bond", None, None, 5.9)] +
     [("loss." + SETTING.get(name, name), None, None, int(name in ("coordinate", "bond_length"))) for name in TERMS], None,
     ["tokens", "lengths", "coords", "valid", "unpaired", "means"]),
    ("rna_transformer", ["structure terms"], None,
     TEXT + [("model.head", None, None, "frames"), ("model.positions", None, None, "both_ends")] +
     [("loss." + SETTING.get(name, name), "weights." + name, None, None) for name in TERMS], None,
     ["tokens", "lengths", "coords", "known", "hairpin"]),
    ("text_classifier", ["classes", "mean pooling"], None, TEXT + CLASSES + [("model.pooling", None, None, "mean")], None,
     ["tokens", "lengths", "label"]),
    ("text_tagger", ["tags", "valid positions"], None, TEXT + CLASSES, None, ["tokens", "lengths", "labels"]),
    ("series_lstm", ["mse of the last step"], "hidden",
     SERIES + [("model.hidden", "hidden", None, None), ("model.layers", "layers", None, None),
               ("inputs", "inputs", ("rnn.weight_ih_l0", 1), None), ("outputs", "outputs", ("head.weight", 0), None)], None,
     ["x", "target"]),
    ("series_transformer", ["mse of the last step"], "patches",
     SERIES + [("model.heads", "heads", None, 4), ("model.d_model", "d_model", ("inp.weight", 0), None),
               ("model.d_ff", "d_ff", ("blocks.0.f1.weight", 0), None), ("inputs", "inputs", ("inp.weight", 1), None),
               ("outputs", "outputs", ("head.weight", 0), None)], Model.count_blocks, ["x", "target"]),
    ("series_dense", ["cross entropy"], "widths", SERIES, Model.read_widths, ["x", "target"]),
    ("series_dense", ["mse of the outputs"], "widths", SERIES, Model.read_widths, ["x", "target"]),
    ("image_resnet", ["cross entropy; batch norm"], None,
     [("model.dropout", None, None, 0), ("model.width", "channels", ("stem.weight", 0), None), ("data.image_size", "px", None, None),
      ("inputs", "inputs", ("stem.weight", 1), None), ("classes", "classes", ("fc.weight", 0), None)], Model.read_stages,
     ["image", "label"]),
    ("mask_segformer", ["per-pixel cross entropy"], None,
     mask_rows("heads") + [("inputs", "inputs", ("pe.0.weight", 1), None), ("classes", "classes", ("cls.weight", 0), None)], None,
     ["image", "mask"]),
    ("mask_segformer", ["mask loss of the picture"], None,
     mask_rows("heads") + MASK_LOSS + [("inputs", "inputs", ("pe.0.weight", 1), None)], None, ["image", "mask"]),
    ("emberformer", ["mask loss of the next frame"], None,
     mask_rows("spatial_heads") + MASK_LOSS + TEMPORAL +
     [("data.history", "T", None, None), ("data.patch", "patch", None, None), ("inputs", "inputs", None, None)], None,
     ["frames", "lengths of patches", "mask"]),
]
NUMBER = r"([-+.\deE]+)"
ADAMW = rf"AdamW lr={NUMBER} betas=\({NUMBER},\s*{NUMBER}\) eps={NUMBER} weight_decay={NUMBER}"


def find_family(arrays, config):
    """The model with its settings, and the names of its fields."""
    for kind, words, needs, rows, more, fields in FAMILIES:
        model = Model(arrays, config)
        model.set("model.type", kind)
        if not all(word in config["loss"] for word in words) or (needs and model.find(needs) is None):
            continue
        if model.set_rows(rows) and (not more or more(model)):
            return model, fields
    return refuse(f"no family matches its config: {json.dumps(config)}")


def convert(arrays, metadata):
    """The arrays and metadata of the converted file."""
    if "config" not in metadata:
        refuse("the metadata have neither 'profile' nor 'config': not a reference trajectory")
    try:
        config = json.loads(metadata["config"])
    except ValueError:
        refuse(f"its config is not JSON: {metadata['config']}")
    if not isinstance(config, dict) or not isinstance(config.get("loss"), str):
        refuse(f"its config has no sentence 'loss': {metadata['config']}")
    if config.get("layout", "NCHW") != "NCHW":
        refuse(f"its layout is {config['layout']}; images of the old format are NCHW")
    optimizer = re.fullmatch(ADAMW, metadata.get("optimizer", ""))
    if not optimizer:
        refuse(f"its optimizer is not understood: {metadata.get('optimizer', 'none')}")
    model, fields = find_family(arrays, config)
    for key in sorted(config.keys() - model.used):
        print(f"{sys.argv[1]}: 'config' has '{key}', which is not converted", file=sys.stderr)
    names = ("learning_rate", "beta1", "beta2", "eps", "weight_decay")
    model.sections["train"] = {**dict(zip(names, optimizer.groups())), "max_grad_norm": "none"}
    profile = "".join(f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
                      for name, keys in model.sections.items())
    batch = Batch(arrays)
    made = dict(FIELDS[field](batch) for field in fields)
    results = {name: one for name, one in arrays.items() if name in ("output", "loss") or "/" in name}
    for name in ("output", "loss"):
        if name not in results:
            refuse(f"there is no array '{name}'")
    for name in sorted(arrays.keys() - results.keys() - {"input", "target", "lengths"}):
        print(f"{sys.argv[1]}: the array '{name}' is not converted", file=sys.stderr)
    made = dict(sorted(made.items(), key=lambda item: item[1].dtype != "I64"))  # 8-byte types first, which aligns all arrays
    rest = {key: value for key, value in metadata.items() if key not in ("config", "optimizer")}
    return {**made, **results}, {"profile": profile, "sizes": json.dumps(model.sizes), **rest}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    write(sys.argv[2], *convert(*read(sys.argv[1])))
