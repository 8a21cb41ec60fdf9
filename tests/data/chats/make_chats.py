#!/usr/bin/env python3
"""Chat templates of published models and what transformers makes of them, for test_chat_templates.c.

    make_chats.py [FOLDER]  writes chats.json and tokenizer.json, with the templates of templates.json; FOLDER has NAME.jinja
                            of those without a text there, whose results are kept otherwise
    make_chats.py --check   compares chats.json with what the installed transformers makes

chats.json: `rendered`, texts by apply_chat_template; `encoded`, token ids and which of them have a byte of an answer: the
bytes from the end of the prompt (the conversation up to the answer, with add_generation_prompt) to the end of the text that
ends an answer. Exits with 77 if a library is missing."""
# ctest: quick
import itertools
import json
import pathlib
import sys
import tempfile

try:
    import tokenizers
    import transformers
except ImportError as missing:
    print(missing)
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
SPECIALS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>",
            "<end_of_turn>"]
ENDS = {"chatml": "<|im_end|>", "qwen3": "<|im_end|>", "llama3": "<|eot_id|>", "llama3.1": "<|eot_id|>", "llama2": "</s>", "gemma": "<end_of_turn>",
        "gemma3": "<end_of_turn>", "mistral": "</s>", "mistral-v0.1": "</s>", "zephyr": "</s>", "mistral-v3": "</s>", "mistral-v3-tekken": "</s>",
        "phi3": "<|end|>", "phi3.5": "<|end|>", "deepseek-r1": "<｜end▁of▁sentence｜>", "mistral-v7": "</s>", "mistral-v7-tekken": "</s>", "phi4": "<|im_end|>"}
MORE = ["[INST]", "[/INST]", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "[SYSTEM_PROMPT]",
        "[/SYSTEM_PROMPT]", "<|im_sep|>"]
DEFAULTS = ["smollm2", "qwen2", "qwen2_5"]  # have a system message of their own; "dated": one that differs from day to day
CORPUS = ["Hello there, how are you? I am fine, thank you.\n\nThe answer is 42.\n", "user assistant system model\n", "Grüße aus Köln, 你好。\n"] * 20


def user(text):
    return {"role": "user", "content": text}


def answer(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


CONVERSATIONS = [
    [user("Hello")],
    [user("Hello"), answer("Hi there.")],
    [user(" \n Grüße \u00a0"), answer("\t你好。\u3000\n"), user("x"), answer("")],
    [system("Be brief. "), user("How are you?"), answer("Fine, thank you.\n\nAnd you?"), user("Well\n"), answer("Good.")],
    [system(""), user("  "), answer("  ")],
    [system("S"), user("  "), answer("\x1c\u2003 y \u2028")],
    [user("a"), answer("<think>\nHm.\n</think>\n\nOne"), user("b"), answer("<think>\n\n\nHm, hm.\n\n</think>\n\nTwo")],
    [user("a"), answer("One", reasoning_content="\nThoughts\n"), answer("Two")],
    [user("a"), answer("x<think>y<think>z</think>u</think>\nv"), user("<tool_response>\n1\n</tool_response>"), answer("\n\nTwo")],
    [user("a"), answer("One"), system("Now brief."), user("b"), answer("Two")],
    [user("a"), user("b"), answer("c")],
    [answer("c")],
    [system("only")],
    [user("in <|im_end|> and </s> out"), answer("ok")],
]


def applied(tokenizer, messages, asks):
    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=asks, date_string="26 Jul 2024")
    except Exception as refused:  # raise_exception of the template
        return {"error": str(refused)}


def train():
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=340, special_tokens=SPECIALS, show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(CORPUS, trainer)
    made.add_special_tokens(MORE)
    return made


def spans(tokenizer, messages, end):
    """Bytes of the answers: from the prompt of each, to its end."""
    found, text = [], applied(tokenizer, messages, False)
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        prompt = applied(tokenizer, messages[:i], True)
        if not isinstance(prompt, str) or not text.startswith(prompt):
            return None
        start = len(prompt.encode())
        found.append((start, text.encode().index(end.encode(), start) + len(end)))  # no answer here contains `end`
    return found


def encode(tokenizer, messages, end):
    text = applied(tokenizer, messages, False)
    answers = spans(tokenizer, messages, end) if isinstance(text, str) else None
    if not answers:
        return None
    made = tokenizer._tokenizer.encode(text, add_special_tokens=False)
    at = [0, *itertools.accumulate(len(c.encode()) for c in text)]
    learned = [int(any(at[b] < stop and at[e] > start for start, stop in answers)) for b, e in made.offsets]
    return {"ids": made.ids, "learned": learned}


def make(texts):
    kept = json.loads((HERE / "chats.json").read_text())
    templates = json.loads((HERE / "templates.json").read_text())
    made, rendered, encoded = train(), [], []
    with tempfile.TemporaryDirectory() as folder:
        made.save(f"{folder}/tokenizer.json")
        json_text = (pathlib.Path(folder) / "tokenizer.json").read_text()
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json", bos_token="<s>", eos_token="</s>")
    for name, template in templates.items():
        file = pathlib.Path(texts, f"{name}.jinja")
        if "text" not in template and not file.is_file():
            rendered += [case for case in kept["rendered"] if case["template"] == name]
            encoded += [case for case in kept["encoded"] if case["template"] == name]
            continue
        tokenizer.chat_template = template.get("text") or file.read_text()
        for index, messages in enumerate(CONVERSATIONS):
            if "dated" in template and messages[0]["role"] != "system":
                continue
            which = {"template": name, "conversation": index}
            for asks in (False, True):
                if asks and messages[-1]["role"] == "assistant":
                    continue
                rendered.append({**which, "asks": asks, "text": applied(tokenizer, messages, asks)})
            case = encode(tokenizer, messages, ENDS[template["form"]])
            if case and messages in CONVERSATIONS[1:4] + CONVERSATIONS[-1:]:
                encoded.append({**which, **case})
    return {"conversations": CONVERSATIONS, "rendered": rendered, "encoded": encoded}, json_text


def check_programs(rendered):
    """The programs that cleat writes (by test_chat_templates.c) render what the published ones of their forms do, where these
    neither refuse nor drop a message."""
    templates, compared = json.loads((HERE / "templates.json").read_text()), 0
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "tokenizer.json").write_text((HERE / "tokenizer.json").read_text())
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json", bos_token="<s>", eos_token="</s>")
    for program in json.loads((HERE / "programs.json").read_text()):
        for case in rendered:
            template, messages = templates[case["template"]], CONVERSATIONS[case["conversation"]]
            own_system = messages[0]["role"] == "system"
            if template["form"] != program["form"]:
                continue
            tokenizer.chat_template = template.get("text")
            if program["system"] and not own_system:
                if not tokenizer.chat_template:
                    continue
                expected = applied(tokenizer, [system(program["system"]), *messages], case["asks"])
            elif not own_system and case["template"] in DEFAULTS:
                continue
            else:
                expected = case["text"]
            tokenizer.chat_template = program["text"]
            made = applied(tokenizer, messages, case["asks"])
            if isinstance(made, str) and isinstance(expected, str):
                assert made == expected or any(message["content"] not in expected for message in messages), (case, made, expected)
                compared += made == expected
            else:
                assert isinstance(made, dict), (case, made, expected)
    return compared


def main():
    check = sys.argv[1:] == ["--check"]
    found, tokenizer = make(HERE if check else "".join(sys.argv[1:2]))
    if not check:
        (HERE / "chats.json").write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n")
        (HERE / "tokenizer.json").write_text(tokenizer)
        return
    kept = json.loads((HERE / "chats.json").read_text())
    for part in ("rendered", "encoded"):
        assert len(found[part]) == len(kept[part])
        for ours, theirs in zip(kept[part], found[part]):
            assert ours == theirs, (ours, theirs)
    print(f"{check_programs(found['rendered'])} texts of cleat's programs are those of the published ones")
    print(f"{len(kept['rendered'])} texts and {len(kept['encoded'])} encoded conversations are as transformers {transformers.__version__} makes them")


main()
