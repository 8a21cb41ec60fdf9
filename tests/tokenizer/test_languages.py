#!/usr/bin/env python3
"""Tokenizers of language models on 10,000 texts, against Hugging Face's tokenizers and sentencepiece.

    test_languages.py TOKENIZER_TEXTS [FOLDER_OR_FILE...]

Trains vocabularies of the forms of Llama 3, Qwen2, SmolLM2, GPT-2, Llama 2, Mistral and Gemma on the texts, and
compares ids and texts of ids. Further arguments are published tokenizers: a tokenizer.json or a tokenizer.model.
Exits with 77 if tokenizers is not installed; without sentencepiece, its models are left out.
"""
# ctest: none cost=20
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

try:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as missing:
    print(missing)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<bos>", "<start_of_turn>", "<unk>"]
SPACES = [" ", "  ", "    ", " " * 17, " " * 40, "\t", "\n", "\n\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2003", "\u2028", "\v", "\f", "\u0085",
          "\u200b", "\ufeff", "\u2581", "\u2581\u2581"]
WORDS = ["word", "x", "12", ".", "don't", "I'LL", "we'Re", "\u00e9", "e\u0301", "\u03a9", "\u017f", "<0x0A>", "====", "aaaaa", "--------", "_______"]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def make_texts():
    draw = random.Random(7)
    code = [line for path in sorted((ROOT / "src").rglob("*.c"))[:200] for line in path.read_text().split("\n")]
    cjk = [(0x4E00, 0x9FFF), (0x3040, 0x30FF), (0xAC00, 0xD7A3), (0x3000, 0x3020), (0xFF00, 0xFF60), (0x20000, 0x20200)]
    emoji = [*range(0x1F600, 0x1F650), *range(0x1F300, 0x1F330), 0x200D, 0xFE0F, 0x1F3FB, 0x2764, 0x1F1E9, 0x1F1EA]
    some = [(0x20, 0x250), (0x300, 0x600), (0x600, 0x1000), (0x1000, 0x3000), (0xA000, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x11000),
            (0x1D400, 0x1D800), (0x1E000, 0x20000), (1, 31)]

    def one_of(ranges):
        while True:
            character = chr(draw.randint(*draw.choice(ranges)))
            # the normal forms of tokenizers have the tables of Unicode 9, to which newer marks are starters
            new_mark = unicodedata.combining(character) != unicodedata.ucd_3_2_0.combining(character)
            if unicodedata.category(character) != "Cn" and not new_mark:
                return character

    kinds = [lambda: "\n".join(code[(at := draw.randrange(len(code) - 3)):at + draw.randint(1, 3)]),
             lambda: " ".join(draw.choice(code) for _ in range(2)).replace("_", " "),
             lambda: "".join(draw.choice("0123456789.,-+eE x") for _ in range(draw.randrange(1, 40))),
             lambda: "".join(one_of(cjk) if draw.random() < 0.8 else draw.choice(" a1\n\u3002\uff0c") for _ in range(draw.randrange(1, 30))),
             lambda: "".join(chr(draw.choice(emoji)) if draw.random() < 0.6 else draw.choice([" ", "ok", "!", "\n"]) for _ in range(draw.randrange(1, 20))),
             lambda: "".join(draw.choice(SPACES if draw.random() < 0.55 else WORDS) for _ in range(draw.randrange(1, 16))),
             lambda: "".join(draw.choice(SPECIAL + WORDS + [" ", "\n"]) for _ in range(draw.randrange(1, 12))),
             lambda: "".join(one_of(some) for _ in range(draw.randrange(1, 25)))]
    texts = [kinds[i % len(kinds)]() for i in range(9990)]
    return texts + ["", " ", "\0", "a\0b", "\u1112\u1161\u11ab \ufb01\u2126\u212b", " " * 3000, "\n" * 3000, "\u4e2d" * 2000, "1" * 3000, "ab " * 2000]


def byte_level(texts, splits, normalizer=None, **settings):
    t = Tokenizer(models.BPE(**settings))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Sequence(splits)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=3000, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ("<|im_start|>", "<|im_end|>", "<|eot_id|>")])
    t.add_tokens([AddedToken("<unk>", normalized=False)])
    return t


def marked(texts, normalizer, pre_tokenizer, strip, added=()):
    """A BPE with marks for blanks and pieces for bytes."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    special = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)]
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=3000, show_progress=False, special_tokens=special, limit_alphabet=400))
    parts = json.loads(t.to_str())
    parts["added_tokens"] = parts["added_tokens"][:3]
    parts["pre_tokenizer"] = None
    t = Tokenizer.from_str(json.dumps(parts))
    t.normalizer = normalizer
    if pre_tokenizer:
        t.pre_tokenizer = pre_tokenizer
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()] + ([decoders.Strip(" ", 1, 0)] if strip else []))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    t.add_tokens([AddedToken(name, normalized=False) for name in added])
    return t


def trained(texts):
    sample = random.Random(3).sample(texts, 4000)
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    isolated = lambda expression: pre_tokenizers.Split(Regex(expression), "isolated")  # noqa: E731
    prefix = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    yield "llama3", byte_level(sample, [isolated(LLAMA3), bytes_only], ignore_merges=True)
    yield "qwen2", byte_level(sample, [isolated(LLAMA3.replace("{1,3}", "")), bytes_only], normalizers.NFC())
    yield "smollm2", byte_level(sample, [pre_tokenizers.Digits(individual_digits=True), gpt2])
    yield "gpt2", byte_level(sample, [gpt2])
    yield "llama2", marked(sample, prefix, None, True)
    yield "mistral", marked(sample, None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), True)
    yield "gemma", marked(sample, normalizers.Replace(" ", "\u2581"), pre_tokenizers.Split(" ", "merged_with_previous"), False, ["\n\n", "<bos>"])


def run(program, path, records):
    made = subprocess.run([program, path], input=records, capture_output=True)
    if made.returncode:
        sys.exit(f"{path}: {made.returncode} {made.stderr.decode()}")
    return made.stdout, made.stderr.decode().split()


def lists_of_ids(t, encodings):
    """Ids of the texts with the template, random ids, and ids of texts without some of their tokens."""
    draw, size = random.Random(5), t.get_vocab_size()
    lists = [e.ids for e in encodings]
    for _ in range(1500):
        lists.append([draw.randrange(size + 4) if draw.random() < 0.5 else draw.randrange(min(size, 300)) for _ in range(draw.randrange(0, 30))])
        lists.append([i for i in draw.choice(lists[:10000])[:60] if draw.random() < 0.8])
    return lists


def compare(program, name, path, t, texts, want=None):
    encodings = t.encode_batch(texts)
    want = want or [e.ids for e in t.encode_batch(texts, add_special_tokens=False)]
    lists = lists_of_ids(t, encodings)
    records = b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in texts)
    records += b"".join(struct.pack(f"<I{len(ids)}i", len(ids) | 1 << 31, *ids) for ids in lists)
    data, said = run(program, path, records)
    at = 0
    for text, ids in zip(texts, want):
        count = struct.unpack_from("<I", data, at)[0]
        got = list(struct.unpack_from(f"<{count}i", data, at + 4))
        at += 4 + 4 * count
        assert got == ids, f"{name}: {text!r}: {got[:20]} is not {ids[:20]}"
    for ids in lists:
        plain = t.decode(ids, skip_special_tokens=True)
        for expected in (t.decode(ids, skip_special_tokens=False), plain, plain):
            size = struct.unpack_from("<I", data, at)[0]
            got = data[at + 4:at + 4 + size].decode()
            at += 4 + size
            assert got == expected, f"{name}: {ids[:20]}: {got!r} is not {expected!r}"
    assert at == len(data)
    print(f"{name}: {len(texts)} texts, {len(lists)} lists of ids are equal; loaded in {said[2]} s, {len(texts) / float(said[3]):.0f} texts/s")


def sentencepiece_model(program, texts, folder, prefix):
    """A model as that of Llama 2 (with a blank before a text), or of Gemma (with pieces of its users). SentencePiece does not read special tokens."""
    try:
        import sentencepiece as spm
    except ImportError as missing:
        print(missing, "- its models are left out")
        return
    users = [] if prefix else ["<|im_start|>", "\n\n", "\u2581\u2581", "\u2581\u2581\u2581", "\u2581" * 4]
    spm.SentencePieceTrainer.train(sentence_iterator=iter([text for text in texts if text.isascii()]), model_prefix=f"{folder}/tokenizer",
                                   model_type="bpe", vocab_size=2000, byte_fallback=True, normalization_rule_name="identity", num_threads=1,
                                   remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True, minloglevel=2,
                                   add_dummy_prefix=prefix, user_defined_symbols=users)
    path = f"{folder}/tokenizer.model"
    model = spm.SentencePieceProcessor(model_file=path)
    plain = [text for text in texts if not any(name in text for name in ("<s>", "</s>", "<unk>", "\0", "\u2581"))]
    data, _ = run(program, path, b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in plain))
    at = 0
    for text in plain:
        count = struct.unpack_from("<I", data, at)[0]
        got, ids = list(struct.unpack_from(f"<{count}i", data, at + 4)), model.encode(text) if text else []
        at += 4 + 4 * count
        assert got == ids, f"sentencepiece: {text!r}: {got[:20]} is not {ids[:20]}"
    print(f"sentencepiece {'with' if prefix else 'without'} a blank before: {len(plain)} texts are equal")


def main():
    program, texts = sys.argv[1], make_texts()
    with tempfile.TemporaryDirectory() as folder:
        for name, t in trained(texts):
            path = f"{folder}/{name}.json"
            t.save(path)
            compare(program, name, path, Tokenizer.from_file(path), texts)
        sentencepiece_model(program, texts, folder, True)
        sentencepiece_model(program, texts, folder, False)
    for path in sys.argv[2:]:
        compare(program, path, path, Tokenizer.from_file(path), texts)


main()
