#!/usr/bin/env python3
"""Writes the first inputs of the fuzzer to tests/fuzz/corpus/TARGET, from the data of the other tests.

  tests/fuzz/make_corpus.py

Keeps inputs that the fuzzer found (found_*), and the JPEG files if Pillow is not installed.
"""
import gzip
import io
import json
import pathlib
import struct
import zlib

FUZZ = pathlib.Path(__file__).resolve().parent
TESTS, SOURCE, CORPUS = FUZZ.parent, FUZZ.parent.parent, FUZZ / "corpus"


def put(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def parts(first, rest):
    first, rest = (part if isinstance(part, bytes) else part.encode() for part in (first, rest))
    return struct.pack("<H", len(first)) + first + rest


def png(width, height, colour, depth, interlaced=0, palette=b"", transparent=b""):
    planes = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row = (width * planes * depth + 7) // 8
    pixels = b"".join(bytes([y % 5]) + bytes((x * 37 + y * 11) % 256 if colour != 3 else 0x12 for x in range(row))
                      for y in range(height * (2 if interlaced else 1) + 8 * interlaced))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))]
    if palette:
        chunks.append((b"PLTE", palette))
    if transparent:
        chunks.append((b"tRNS", transparent))
    chunks += [(b"IDAT", zlib.compress(pixels)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)


def images():
    put("png", "grey", png(5, 4, 0, 8))
    put("png", "bits", png(9, 3, 0, 1))
    put("png", "colour16", png(3, 3, 2, 16))
    put("png", "palette", png(6, 2, 3, 4, palette=bytes(range(48)), transparent=b"\x00\x80\xff"))
    put("png", "alpha", png(4, 4, 6, 8))
    put("png", "interlaced", png(4, 4, 4, 8, 1))
    for name in ("one_group4", "one_group3", "one_packbits", "grey_lzw", "grey_jpeg", "grey_big", "wide_deflate", "wide_lerc",
                 "wide_zstd", "wide_tiles", "rgb_planes", "rgb_webp", "ycbcr_tiles", "stack"):
        put("tiff", name, (TESTS / "data" / "tiff" / f"{name}.tif").read_bytes())
    put("image_table", "named", parts("id,label\nx,cat\ny.png,dog\n", png(5, 4, 0, 8)))
    put("image_table", "tabs", parts("sep=\t\nlabel\tfile\n1\tx.png\n2\ty\n\"1\"\tx\n", png(9, 3, 0, 1)))
    try:
        from PIL import Image  # noqa: PLC0415
    except ImportError:
        return
    picture = Image.new("RGB", (17, 9), (200, 30, 90))
    for name, mode, options in [("colour", "RGB", {}), ("grey", "L", {}), ("progressive", "RGB", {"progressive": True}),
                                ("cmyk", "CMYK", {})]:
        file = io.BytesIO()
        picture.convert(mode).save(file, "JPEG", quality=30, **options)
        put("jpeg", name, file.getvalue())


def arrays():
    idx = struct.pack(">HBBIII", 0, 8, 3, 3, 2, 2) + bytes(range(12)), struct.pack(">HBBI", 0, 8, 1, 3) + b"\0\1\2"
    put("idx", "three", parts(*idx))
    put("gzip", "three", parts(*(gzip.compress(part, mtime=0) for part in idx)))
    put("cifar", "two", parts("airplane\nship\n", b"\1\2\3\4\5"))
    put("cifar", "short", parts("a\n\n b \n", b"\0" * 14))
    for kind, size in [("<f4", 4), (">f8", 8), ("|u1", 1), ("<i2", 2), ("|b1", 1)]:
        head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (2, 3), }}"
        head += " " * (-(len(head) + 11) % 64) + "\n"
        put("npy", kind[1:], b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + bytes(6 * size))
    put("esri", "grid", "ncols 3\nnrows 2\nxllcorner 1.5\nyllcenter -2e3\ncellsize 10\nNODATA_value -9999\n1 2 3\n4 -9999 6\n")


def tables():
    put("csv", "quoted", 'a,b,"c ""d"""\r\n1,"x\ny",3\r\n,,\r\n')
    put("csv", "semicolons", "\ufeffa;b\n1;2\n")
    rows = "".join(f"2020-01-{d:02} 00:00,{d},{d * d if d % 7 else ''}\n" for d in range(1, 29))
    put("series", "days", "time,a,b\n" + rows)
    put("series", "seconds", "t,x\n" + "".join(f"{1500000000 + 3600 * i},{i % 5}\n" for i in range(30)))
    atom = "ATOM  {:5d}  C1'   {} A{:4d}    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00           C\n"
    put("pdb", "chain", "MODEL        1\n" + "".join(atom.format(i, "ACGU"[i % 4], i, 1.5 * i, -i, 0.25 * i)
                                                     for i in range(1, 9)) + "TER\nENDMDL\nEND\n")
    put("fasta", "two", ">one text\nACGU\nNNAC\n\n>two\nacgut\n")
    put("rna_csv", "two", parts("target_id,sequence\nA,ACGU\nB,GG\n", "ID,resname,resid,x_1,y_1,z_1\n" + "".join(
        f"{name}_{i},{letter},{i},{i},2.5,-1e18\n" for name, chain in (("A", "ACGU"), ("B", "GG"))
        for i, letter in enumerate(chain, 1))))


def texts():
    put("table", "two", "text,label\nab c,yes\n\"a\nb\",no\nc,yes\n")
    put("tsv", "two", "text\tlabel\nab c\tyes\na b\tno\nc\tyes\n")
    put("conll", "tags", "-DOCSTART- O\n\nab B-X\nc I-X\n. O\n\na\tB-Y\nb\tO\n")
    put("lines", "three", "ab c.\n\n(a) b!\nc\n")
    put("vocabulary", "small", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n\u00e9\n")
    for file in sorted((TESTS / "tokenizer/tokenizers").glob("*.json")):
        whole = json.loads(file.read_text())
        put("tokenizer_json", file.stem, json.dumps(whole, separators=(",", ":"), ensure_ascii=False))
    put("sentencepiece", "bpe", (TESTS / "tokenizer/tokenizers/sentencepiece.bpe.model").read_bytes())
    put("sentencepiece", "llama2", (TESTS / "tokenizer/tokenizers/tokenizer.model").read_bytes())
    marks = ["\2<unk>", "\3<s>", "\3</s>", "\4  ", "\6<0xE4>", "\6<0xB8>", "\1\u2581", "\1t", "\1h", "\1th", "\1\u2581th"]
    put("metadata", "marks", b"\x1f\x01\x02\x00\xff" + "\0".join(marks).encode())
    letters = ["\3<s>", "\1a", "\1b", "\1ab", "\4<t>", "\1a b"]
    put("metadata", "letters", b"\x0c\x00\xff\xff\xff" + "\0".join(letters).encode())
    rows = ['{"prompt": "a", "completion": "b"}', '{"text": "ab ab"}', '{"messages": [{"role": "system", "content": "b"}, {"role": '
            '"user", "content": " a"}, {"role": "assistant", "content": "<think>\\na</think>b", "weight": 1}]}']
    for i in range(21):  # each template, by the size
        put("chats", f"three_{i}", "\n".join(rows) + "\n" + " " * 7 * i)
    put("prompts", "two", "prompt,completion\na,b\n\"a\na\",ab\n")
    put("documents", "two", "ab a\nb\n\n a b\n")
    programs = json.loads((TESTS / "data/chats/templates.json").read_text())
    for name in ["smollm2", "qwen3", "llama2", "gemma3", "llama3_2", "phi3_5", "deepseek_r1_distill"]:
        put("chat_template", name, json.dumps({"chat_template": programs[name]["text"], "bos_token": "<s>", "eos_token": {"content": "</s>"}}))
    written = json.loads((TESTS / "data/chats/programs.json").read_text())[1]["text"]
    put("chat_template", "written", json.dumps({"chat_template": written, "bos_token": "<s>", "eos_token": "</s>"}))
    offsets = struct.pack("<QQQ", 0, 2, 3) + struct.pack("<iii", 5, 9, 7)
    put("encode_cache", "two", b"CLEATTOK" + struct.pack("<QQQQ", 1, 2, 3, 0) + bytes(80) + offsets)


def tensors(arrays, metadata=None):
    head, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (kind, shape, values) in arrays.items():
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def gguf(architecture, tensors, alignment=32):
    """A file of version 3. tensors: name, extents, type of ggml, bytes."""
    def text(words):
        return struct.pack("<Q", len(words)) + words.encode()

    sizes = ["context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count"]
    members = [text("general.architecture") + struct.pack("<I", 8) + text(architecture)]
    members += [text(f"{architecture}.{key}") + struct.pack("<II", 4, size) for key, size in zip(sizes, [16, 32, 1, 32, 2])]
    members += [text(f"{architecture}.attention.layer_norm_{key}") + struct.pack("<If", 6, 1e-5) for key in ("epsilon", "rms_epsilon")]
    words = ["<unk>", "<0x41>", "a", "b", "ab"]
    members += [text("tokenizer.ggml.model") + struct.pack("<I", 8) + text("gpt2" if architecture == "gpt2" else "llama"),
                text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(words)) + b"".join(map(text, words)),
                text("tokenizer.ggml.scores") + struct.pack("<IIQ5f", 9, 6, len(words), 0, 0, -1, -2, -3),
                text("tokenizer.ggml.token_type") + struct.pack("<IIQ5i", 9, 5, len(words), 2, 6, 1, 1, 1),
                text("tokenizer.ggml.merges") + struct.pack("<IIQ", 9, 8, 1) + text("a b"),
                text("general.alignment") + struct.pack("<II", 4, alignment)]
    infos, data = [], b""
    for name, extents, kind, values in tensors:
        infos.append(text(name) + struct.pack(f"<I{len(extents)}QIQ", len(extents), *extents, kind, len(data)))
        data += values + bytes(-len(values) % alignment)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(members)) + b"".join(members) + b"".join(infos)
    return head + bytes(-len(head) % alignment) + data


def runs():
    blocks = [("token_embd.weight", [32, 4], 8, bytes(4 * 34)), ("blk.0.attn_q.weight", [32, 8], 3, bytes(8 * 20)),
              ("blk.0.attn_q.bias", [8], 0, bytes(32)), ("output_norm.weight", [32], 1, bytes(64))]
    put("gguf", "llama", gguf("llama", blocks + [("rope_freqs.weight", [8], 0, struct.pack("<8f", *[1] * 8))]))
    put("gguf", "gemma3", gguf("gemma3", [("token_embd.weight", [256, 4], 12, bytes(4 * 144)),
                                          ("blk.0.ffn_up.weight", [256, 2], 14, bytes(2 * 210)), blocks[3]], 64))
    put("gguf", "gpt2", gguf("gpt2", [blocks[0], ("blk.0.attn_qkv.weight", [32, 6], 6, bytes(6 * 22)),
                                      ("blk.0.attn_qkv.bias", [6], 30, bytes(12))]))
    for name in ["rna_small", "text_tag", "image_finetune", "series_lstm"]:
        lines = (SOURCE / "profiles" / f"{name}.ini").read_text().splitlines()
        put("profile", name, "\n".join(line for line in lines if line and line[0] not in "#;") + "\n")
    for name in ["t4", "mi210"]:
        put("card", name, (SOURCE / "profiles/devices" / f"{name}.ini").read_bytes())
    two = {"a": ("F32", [2, 2], bytes(16)), "b": ("F16", [3], bytes(6)), "c": ("I64", [], bytes(8))}
    put("safetensors", "three", tensors(two, {"format": "pt"}))
    for name in ["electra_tagger", "vit", "segformer", "resnet", "convnext", "deberta_tagger"]:
        config = json.loads((TESTS / "published" / name / "config.json").read_text())
        put("weights", name, parts(json.dumps(config, separators=(",", ":")), tensors(two)))
    hashed = '{"size": 1, "hash": "' + "0" * 32 + '"}'
    real = '{"value": 1.5, "bits": "3ff8000000000000"}'
    put("state", "whole", '{"format": 2, "epoch": 1, "step": 2, "position": 0, "max_length": 0, "seed": "1", "has_best": true, '
        f'"best_metric": {real}, "best_step": 2, "stale_evaluations": 0, "averaged_epochs": 0, "time_used": {real}, '
        f'"next_seconds": {real}, "epochs": 4, "metrics_records": 3, "loss_scale": {real}, "clean_steps": 1, '
        '"skipped_steps": 0, "micro_batch_sizes": [2, 4], "data": {"train": 1, "val": 1, "test": 0, "names": "a", '
        '"content": "b", "file": "c"}, "profile_hash": "", "files": {"model.safetensors": ' + hashed +
        ', "optim.safetensors": ' + hashed + "}}")
    put("tuned", "one", "; comment\n[tuned]\ndevice = a\nkernels = b\ndate = 2026-01-01\n\n[choices]\nlinear f32 8 16 32 = "
        "gemm\n")
    put("rates", "one", "46096654389.89068 14793845550.119812 1.6419094853888216e-05 0\nba18d1bec3a1aee4123abd6a4a0a3034\n")
    profile = "[model]\ntype = rna_transformer\nd_model = 8\nheads = 1\nlayers = 1\nd_ff = 8\n"
    put("trajectory", "rna", tensors({"tokens": ("I32", [1, 4], struct.pack("<4i", 1, 2, 3, 4)), "lengths": (
        "I32", [1], struct.pack("<i", 4)), "coords": ("F32", [1, 4, 3], bytes(48)), "mask": ("F32", [1, 4], bytes(16))},
        {"profile": profile}))
    put("preprocessor", "two", '{"channels": 3, "means": [0.5, 0.5, 0.5], "deviations": [0.25, 0.25, 1e-3], "classes": '
        '["a", "b"], "samples": [2, 1]}')
    put("preprocessor", "masks", '{"channels": 1, "means": [0.5], "deviations": [0.25], "classes": [], "positive": 0.25}')


images()
arrays()
tables()
texts()
runs()
