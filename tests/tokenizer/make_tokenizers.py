#!/usr/bin/env python3
"""Writes the small tokenizers of tests/tokenizer/tokenizers: NAME.json by Hugging Face's tokenizers, NAME.ids with
that library's result for each text, one line of JSON each, NAME.texts with its texts of ids, also of random ones. Run
it in a virtual environment with tokenizers 0.23 and sentencepiece 0.2."""
import base64
import json
import pathlib
import random
import struct
import sys
import tempfile

import sentencepiece as spm
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers)

FOLDER = pathlib.Path(__file__).parent / "tokenizers"
CORPUS = ["the quick brown fox jumps over the lazy dog", "unhappy people are unhappily happy", "it's what we'll do, don't we?",
          "caf\u00e9 na\u00efve \u4e2d\u6587 1234 5678 (99%)", "the theme of these themes", "a\u0301 b \u00df"] * 3
TEXTS = ["", " ", "the fox", "  The   FOX\t jumps\n", "caf\u00e9 cafe\u0301 CAF\u00c9", "\u4e2d\u6587\u5b57 the\u4e2d", "don't DON'T we'll  x'y",
         "unhappily unhappiness zzz", "a" * 101, "the" * 60, "1234.5678,9", "[MASK] the <mask>fox</s> [CLS]", "x<tag>y <tag> Tag tags",
         "\u2460\u2461 \ufb01n \u00bd", "\u200b\u200d\u0007\u0000nul", "\ud55c\uae00 \u1112\u1161\u11ab", "\u00a0\u3000\u2003spaces\u2028", "\U0001f600 fox \U0001f468\u200d\U0001f469",
         "\u2581the \u2581", "\ufffd\ud7ff\U0010ffff", "\u0130stanbul \u03a3\u0391\u03a3", "e\u0323\u0301 \u0344", "!!??--__", "lead  lead", "the\r\nfox\r\n"]


def charsmap(table):
    """A SentencePiece normalisation table: a double-array trie (in Darts-clone's units) and the replacements."""
    texts, keys = b"", {}
    for key, value in table.items():
        keys[key.encode()] = len(texts)
        texts += value.encode() + b"\0"
    units, used = {0: 0}, {0}

    def place(node, prefix):
        labels = sorted({key[len(prefix)] if len(key) > len(prefix) else 0 for key in keys if key.startswith(prefix)})
        base = 1
        while any((base ^ label) in used for label in labels) or (node ^ base) >= 1 << 21:
            base += 1
        units[node] = units[node] | (node ^ base) << 10 | (0x100 if 0 in labels else 0)
        used.update(base ^ label for label in labels)
        for label in labels:
            units[base ^ label] = 1 << 31 | keys[prefix] if label == 0 else label
        for label in labels:
            if label:
                place(base ^ label, prefix + bytes([label]))

    place(0, b"")
    array = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(max(units) + 256))
    return struct.pack("<I", len(array)) + array + texts


def wordpiece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=50))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=110, special_tokens=special, show_progress=False))
    t.add_tokens([AddedToken("<tag>", lstrip=True, rstrip=True), AddedToken("Tag", single_word=True, normalized=True)])
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def byte_bpe():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False,
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t


def unigram():
    t = Tokenizer(models.Unigram())
    table = {"\u2460": "1", "\ufb01": "fi", "e\u0301": "\u00e9", "\u00a0": " ", "\u3000": " ", "\n": " ", "\u200b": "", "\u00bd": "1\u20442"}
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap(table)), normalizers.Replace(Regex(" {2,}"), " "),
                                         normalizers.Strip(left=False, right=True)])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    t.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=90, special_tokens=special, unk_token="<unk>", show_progress=False))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return t


def fallback_bpe():
    """Byte fallback, prefix and suffix, an expression with lookahead, digits one by one."""
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace("\u00df", "ss")])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"(?i:'s|'t|'ll)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|\s+(?!\S)|\s+"), "isolated"),
                                               pre_tokenizers.Digits(individual_digits=True)])
    special = ["<unk>"] + ["<0x%02X>" % i for i in range(256)]
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=340, special_tokens=special, show_progress=False, limit_alphabet=30,
                                                      continuing_subword_prefix="##", end_of_word_suffix="</w>"))
    parts = json.loads(t.to_str())
    parts["added_tokens"] = parts["added_tokens"][:1]
    return Tokenizer.from_str(json.dumps(parts))


def field(number, value):
    """A field of a protobuf message: bytes, an int, or a float."""
    if isinstance(value, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", value)
    wire = 2 if isinstance(value, bytes) else 0
    return varint(number << 3 | wire) + (varint(len(value)) + value if wire else varint(value))


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def sentencepiece():
    """The pieces of the Unigram tokenizer as the model file of an XLM-RoBERTa: sentencepiece.bpe.model."""
    parts = json.loads(unigram().to_str())
    pieces = [(piece, struct.unpack("<f", struct.pack("<f", score))[0]) for piece, score in parts["model"]["vocab"][4:]]
    table = base64.b64decode(parts["normalizer"]["normalizers"][0]["precompiled_charsmap"])
    model = b""
    for i, (piece, score) in enumerate([("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)] + pieces):
        model += field(1, field(1, piece.encode()) + field(2, score) + (field(3, 3 if i else 2) if i < 3 else b""))
    model += field(2, field(3, 1)) + field(3, field(1, b"nmt_nfkc") + field(2, table))
    (FOLDER / "sentencepiece.bpe.model").write_bytes(model)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    t = Tokenizer(models.Unigram([(name, 0.0) for name in special] + pieces + [("<mask>", 0.0)], unk_id=3))
    t.normalizer = normalizers.Precompiled(table)
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    t.add_special_tokens(special + ["<mask>"])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def llama3():
    """The form of Llama 3: merges are ignored for whole words, a first token in the template."""
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=320, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>")])
    t.add_tokens([AddedToken("<tag>", normalized=False)])
    bos = t.token_to_id("<|begin_of_text|>")
    t.post_processor = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B:1", special_tokens=[("<|begin_of_text|>", bos)])
    return t


def llama2():
    """The form of Llama 2: tokenizer.model, a BPE model of SentencePiece with pieces of bytes, and its published form."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = pathlib.Path(folder) / "corpus.txt"
        corpus.write_text("\n".join(CORPUS))
        spm.SentencePieceTrainer.train(input=str(corpus), model_prefix=folder + "/m", model_type="bpe", vocab_size=360, byte_fallback=True,
                                       normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
                                       allow_whitespace_only_pieces=True, user_defined_symbols=["<tag>", "\u2581\u2581"], minloglevel=2)
        data = (pathlib.Path(folder) / "m.model").read_bytes()
    (FOLDER / "tokenizer.model").write_bytes(data)
    model = spm.SentencePieceProcessor(model_proto=data)
    size = model.get_piece_size()
    plain = [i for i in range(size) if not (model.is_unknown(i) or model.is_control(i) or model.is_byte(i) or i in (3, 4))]
    names, merges = {model.id_to_piece(i) for i in plain}, []
    for i in sorted(plain, key=lambda i: (-model.get_score(i), i)):
        piece = model.id_to_piece(i)
        merges += [(piece[:k], piece[k:]) for k in range(1, len(piece)) if piece[:k] in names and piece[k:] in names]
    pieces = {(model.id_to_piece(i) if i != 4 else "  "): i for i in range(size)}
    t = Tokenizer(models.BPE(pieces, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ("<unk>", "<s>", "</s>")])
    t.add_tokens([AddedToken(name, normalized=False) for name in ("<tag>", "  ")])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B:1", special_tokens=[("<s>", 1)])
    return t


def write_texts(t, path):
    """Texts of the ids of TEXTS, of random ids, and of texts that lack some of their tokens."""
    draw, size, lists = random.Random(1), t.get_vocab_size(), [t.encode(text).ids for text in TEXTS]
    special = [i for i, token in t.get_added_tokens_decoder().items()]
    for _ in range(25):
        lists.append([draw.choice([draw.randrange(size + 3), draw.randrange(min(270, size)), draw.choice(special)]) for _ in range(draw.randrange(1, 12))])
        ids = t.encode("the \U0001f600\u4e2d e\u0301\U0001f468\u200d fox", add_special_tokens=False).ids
        lists.append([i for i in ids if draw.random() < 0.8])
    with open(path, "w") as out:
        for ids in lists:
            text, skipped = t.decode(ids, skip_special_tokens=False), t.decode(ids, skip_special_tokens=True)
            out.write(json.dumps({"ids": ids, "text": text, "skipped": skipped}) + "\n")


def main():
    """Names on the command line choose; training on a tie has not always the same result. The rest gets NAME.texts only."""
    models_of = {sentencepiece: "sentencepiece.bpe.model", llama2: "tokenizer.model"}
    for make in (wordpiece, byte_bpe, unigram, fallback_bpe, sentencepiece, llama3, llama2):
        chosen = len(sys.argv) < 2 or make.__name__ in sys.argv[1:]
        if not chosen and make in models_of:
            continue
        path = FOLDER / (make.__name__ + ".json")
        text = make().to_str() if chosen else path.read_text()
        t = Tokenizer.from_str(text)
        if make is not sentencepiece:
            write_texts(t, FOLDER / (make.__name__ + ".texts"))
        if not chosen:
            continue
        if make not in models_of:
            path.write_text(text + "\n")
        with open(FOLDER / (make.__name__ + ".ids"), "w") as out:
            for i, first in enumerate(TEXTS):
                for second in (None, TEXTS[(i + 7) % len(TEXTS)]):
                    encoding = t.encode(first, second)
                    line = {"text": first, "pair": second, "ids": encoding.ids, "types": encoding.type_ids}
                    t.enable_truncation(9)
                    short = t.encode(first, second)
                    t.no_truncation()
                    line.update(short=short.ids)
                    out.write(json.dumps(line) + "\n")


main()
