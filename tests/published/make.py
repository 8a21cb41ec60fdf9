#!/usr/bin/env python3
"""Makes the folders beside this file: tiny networks of random weights in published layouts, and what PyTorch computes with them
in double precision (src/inspect/verify/published.h describes the files). Needs torch, torchvision, transformers,
timm and safetensors:

    python3 tests/published/make.py [NAME ...]

Together the folders have the features of real ones: shards with an index, f16 and bf16 weights, a bare backbone, LayerNorm
parameters called gamma and beta, a masked-language-model head, position_ids, another library version's names."""
import json
import os
import shutil
import sys

import timm
import torch
import torchvision
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 10
OPTIMIZER = {"name": "AdamW", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}
TINY = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0)
BATCH, LENGTH = 3, 11


def text_batch(vocabulary, types, rank, classes):
    ids = torch.randint(4, vocabulary, (BATCH, LENGTH))
    mask = torch.ones_like(ids)
    for row, length in enumerate([LENGTH, 7, 4]):
        ids[row, length:] = 0
        mask[row, length:] = 0
    labels = torch.randint(0, classes, (BATCH, LENGTH) if rank == 2 else (BATCH,))
    if rank == 2:
        labels[mask == 0] = -100
        labels[0, 2] = -100
    batch = {"input_ids": ids, "attention_mask": mask}
    if types > 1:
        batch["token_type_ids"] = (torch.arange(LENGTH)[None] >= 5).long() * mask
    return batch, labels


def randomise(model):
    """Weights that affect results: biases and norms are not at their usual initial values."""
    with torch.no_grad():
        for name, value in list(model.named_parameters()) + list(model.named_buffers()):
            if not value.is_floating_point() or value.numel() == 0 or name.endswith("inv_freq"):
                continue
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif value.dim() < 2:
                value.add_(torch.randn_like(value) * 0.05)
            elif "gamma" not in name:
                value.copy_(torch.randn_like(value) * 0.3 / max(value[0].numel(), 1) ** 0.25)


def losses(model, batch, labels, logits_of, ignore, criterion=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=OPTIMIZER["lr"], betas=tuple(OPTIMIZER["betas"]),
                                  eps=OPTIMIZER["eps"], weight_decay=OPTIMIZER["weight_decay"])
    found, gradients = [], {}
    model.train()
    for step in range(STEPS + 1):
        logits = logits_of(model, batch)
        if logits.dim() == 4:
            logits = torch.nn.functional.interpolate(logits, size=labels.shape[1:], mode="bilinear",
                                                     align_corners=False)
        if logits.dim() == 3:
            logits = logits.reshape(-1, logits.shape[-1])
        flat = labels.reshape(-1) if logits.dim() == 2 else labels
        loss = (criterion(logits, labels) if criterion else
                torch.nn.functional.cross_entropy(logits, flat, ignore_index=ignore))
        found.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        if step < STEPS:
            optimizer.step()
    return found, gradients


def write_weights(folder, tensors, shards):
    if shards == 1:
        save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
        return
    names, index = sorted(tensors), {}
    for shard in range(shards):
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = {n: tensors[n] for n in names[shard::shards]}
        save_file(part, os.path.join(folder, file), metadata={"format": "pt"})
        index.update({n: file for n in part})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {}, "weight_map": index}, f)


def make(name, model, config, batch, labels, logits_of, ignore=-100, dtype=torch.float32, rename=lambda n: n, shards=1,
         extra=None, criterion=None):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    randomise(model)
    exact = {n: v.double() for n, v in model.named_buffers() if n.endswith("inv_freq")}  # not in the file
    model = model.to(dtype).double()  # rounded to values of the file's type
    for n, v in model.named_buffers():
        v.copy_(exact.get(n, v))
    state = {n: v.clone() for n, v in model.state_dict().items()}
    model.eval()
    with torch.no_grad():
        output = logits_of(model, batch)
    curve, gradients = losses(model, batch, labels, logits_of, ignore, criterion)
    expected = {k: v.float() if v.is_floating_point() else v for k, v in batch.items()}
    expected.update({"labels": labels.float() if labels.is_floating_point() else labels, "output": output.float(), "loss": torch.tensor(curve)})
    expected.update({"grad/" + n: g.float() for n, g in gradients.items()})
    expected.update({"after/" + n: p.detach().float() for n, p in model.named_parameters()})
    stored = {rename(n): v.to(dtype) if v.is_floating_point() else v for n, v in state.items() if rename(n)}
    stored.update(extra or {})
    write_weights(folder, {n: v.contiguous() for n, v in stored.items()}, shards)
    save_file({n: v.contiguous() for n, v in expected.items()}, os.path.join(folder, "expected.safetensors"),
              metadata={"optimizer": json.dumps(OPTIMIZER)})
    if config:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f, indent=1)


def of_transformers(name, cls, config, classes, rank=1, types=0, targets=None, **options):
    torch.manual_seed(sum(name.encode()))
    config.num_labels = classes
    model = cls(config)
    batch, labels = text_batch(config.vocab_size, types, rank, classes)
    labels = targets if targets is not None else labels
    make(name, model, json.loads(config.to_json_string()), batch, labels, lambda m, b: m(**b).logits, **options)


def bert_tagger():
    config = transformers.BertConfig(vocab_size=40, max_position_embeddings=16, **TINY)
    of_transformers("bert_tagger", transformers.BertForTokenClassification, config, 5, rank=2, types=2,
                    dtype=torch.bfloat16, shards=2)


def bert_regression():
    config = transformers.BertConfig(vocab_size=40, max_position_embeddings=16, problem_type="regression", **TINY)
    of_transformers("bert_regression", transformers.BertForSequenceClassification, config, 2, types=2,
                    targets=torch.tensor([[3.5, -1.0], [0.25, 2.0], [-2.0, 0.5]], dtype=torch.float64),
                    criterion=torch.nn.MSELoss())


def distilbert_labels():
    config = transformers.DistilBertConfig(vocab_size=40, max_position_embeddings=16, dim=16, n_layers=2, n_heads=2,
                                           hidden_dim=24, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0,
                                           problem_type="multi_label_classification",
                                           id2label=dict(enumerate(["sad", "very tired", "angry", "happy"])))
    of_transformers("distilbert_labels", transformers.DistilBertForSequenceClassification, config, 4,
                    targets=torch.tensor([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]], dtype=torch.float64),
                    criterion=torch.nn.BCEWithLogitsLoss())


def bert_classifier():
    config = transformers.BertConfig(vocab_size=40, max_position_embeddings=16, **TINY)
    old = lambda n: n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    of_transformers("bert_classifier", transformers.BertForSequenceClassification, config, 3, types=2, rename=old,
                    extra={"bert.embeddings.position_ids": torch.arange(16)[None],
                           "cls.predictions.bias": torch.zeros(40)})


def roberta_classifier():
    config = transformers.RobertaConfig(vocab_size=40, max_position_embeddings=18, type_vocab_size=1, pad_token_id=1,
                                        **TINY)
    of_transformers("roberta_classifier", transformers.RobertaForSequenceClassification, config, 2,
                    dtype=torch.float16)


def distilbert_tagger():
    config = transformers.DistilBertConfig(vocab_size=40, max_position_embeddings=16, dim=16, n_layers=2, n_heads=2,
                                           hidden_dim=24, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0)
    of_transformers("distilbert_tagger", transformers.DistilBertForTokenClassification, config, 5, rank=2)


def electra_tagger():
    config = transformers.ElectraConfig(vocab_size=40, max_position_embeddings=16, embedding_size=12, **TINY)
    of_transformers("electra_tagger", transformers.ElectraForTokenClassification, config, 5, rank=2, types=2)


def deberta_tagger():
    config = transformers.DebertaV2Config(vocab_size=40, max_position_embeddings=16, type_vocab_size=0,
                                          relative_attention=True, position_buckets=4, max_relative_positions=-1,
                                          share_att_key=True, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm",
                                          position_biased_input=False, pooler_dropout=0, **TINY)
    of_transformers("deberta_tagger", transformers.DebertaV2ForTokenClassification, config, 5, rank=2)


def of_masked(name, cls, config, types=0, left_out=(), **options):
    """A masked language model. The last layer shares the word embeddings: the copies of it and of its bias
    in the file are `left_out` if transformers omits them."""
    of_transformers(name, cls, config, config.vocab_size, rank=2, types=types,
                    rename=lambda n: None if n in left_out else n, **options)


def bert_masked():
    config = transformers.BertConfig(vocab_size=40, max_position_embeddings=16, **TINY)
    of_masked("bert_masked", transformers.BertForMaskedLM, config, types=2, left_out=["cls.predictions.bias"])


def roberta_masked():
    config = transformers.RobertaConfig(vocab_size=40, max_position_embeddings=18, type_vocab_size=1, pad_token_id=1,
                                        **TINY)
    of_masked("roberta_masked", transformers.RobertaForMaskedLM, config, dtype=torch.float16,
              left_out=["lm_head.decoder.weight", "lm_head.decoder.bias"])


def distilbert_masked():
    config = transformers.DistilBertConfig(vocab_size=40, max_position_embeddings=16, dim=16, n_layers=2, n_heads=2,
                                           hidden_dim=24, dropout=0.0, attention_dropout=0.0)
    of_masked("distilbert_masked", transformers.DistilBertForMaskedLM, config, left_out=["vocab_projector.weight"])


def electra_masked():
    config = transformers.ElectraConfig(vocab_size=40, max_position_embeddings=16, embedding_size=12, **TINY)
    of_masked("electra_masked", transformers.ElectraForMaskedLM, config, types=2, left_out=["generator_lm_head.weight"])


def deberta_masked():
    """With the head as in the authors' files."""
    config = transformers.DebertaV2Config(vocab_size=40, max_position_embeddings=16, type_vocab_size=0, legacy=False,
                                          relative_attention=True, position_buckets=4, max_relative_positions=-1,
                                          share_att_key=True, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm",
                                          position_biased_input=False, pooler_dropout=0, **TINY)
    of_masked("deberta_masked", transformers.DebertaV2ForMaskedLM, config)


MODERN = dict(vocab_size=40, hidden_size=16, num_hidden_layers=5, num_attention_heads=2, intermediate_size=24, pad_token_id=0,
              bos_token_id=1, cls_token_id=1, eos_token_id=2, sep_token_id=2, max_position_embeddings=16)


def modernbert_classifier():
    config = transformers.ModernBertConfig(local_attention=6, global_attn_every_n_layers=3, **MODERN)
    of_transformers("modernbert_classifier", transformers.ModernBertForSequenceClassification, config, 3)


def modernbert_mean():
    """With the settings of transformers 4."""
    config = transformers.ModernBertConfig(local_attention=5, global_attn_every_n_layers=2, classifier_pooling="mean",
                                           **MODERN)
    of_transformers("modernbert_mean", transformers.ModernBertForSequenceClassification, config, 4)
    path = os.path.join(HERE, "modernbert_mean", "config.json")
    with open(path) as f:
        written = json.load(f)
    for key in ["layer_types", "rope_parameters"]:
        del written[key]
    written.update(global_attn_every_n_layers=2, global_rope_theta=160000.0, local_rope_theta=10000.0)
    with open(path, "w") as f:
        json.dump(written, f, indent=1)


def modernbert_tagger():
    rope = {"full_attention": {"rope_type": "default", "rope_theta": 500.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 30.0}}
    config = transformers.ModernBertConfig(local_attention=4, rope_parameters=rope, **MODERN)
    of_transformers("modernbert_tagger", transformers.ModernBertForTokenClassification, config, 5, rank=2,
                    dtype=torch.bfloat16)


def modernbert_masked():
    config = transformers.ModernBertConfig(local_attention=2, **MODERN)
    of_masked("modernbert_masked", transformers.ModernBertForMaskedLM, config, left_out=["decoder.weight"])


def images(side, classes, rank=1, batch=BATCH):
    pixels = torch.randn(batch, 3, side, side, dtype=torch.float64)
    labels = torch.randint(0, classes, (batch, side, side) if rank == 3 else (batch,))
    if rank == 3:
        labels[0, :3, :5] = 255
    return {"pixel_values": pixels}, labels


def segformer():
    torch.manual_seed(1)
    config = transformers.SegformerConfig(hidden_sizes=[8, 8, 12, 16], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4],
                                          decoder_hidden_size=12, hidden_dropout_prob=0.0, drop_path_rate=0.0,
                                          attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0)
    config.num_labels = 3
    batch, labels = images(64, 3, rank=3)
    make("segformer", transformers.SegformerForSemanticSegmentation(config), json.loads(config.to_json_string()), batch,
         labels, lambda m, b: m(**b).logits, ignore=255)


def of_timm(name, model, config, side, classes, count=BATCH, **options):
    batch, labels = images(side, classes, batch=count)
    make(name, model, config, batch, labels, lambda m, b: m(b["pixel_values"]), **options)


def resnet():
    torch.manual_seed(2)
    model = timm.models.resnet.ResNet(timm.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=4, channels=(8, 8, 16, 16))
    of_timm("resnet", model, {"architecture": "resnet", "block": "basic", "layers": [1, 1, 1, 1], "num_classes": 4,
                              "channels": [8, 8, 16, 16]}, 64, 4, count=8)


def vit():
    torch.manual_seed(3)
    model = timm.models.vision_transformer.VisionTransformer(img_size=24, patch_size=8, embed_dim=16, depth=2, num_heads=2,
                                                             num_classes=4)
    of_timm("vit", model, {"architecture": "vit", "img_size": 24, "patch_size": 8, "embed_dim": 16, "depth": 2,
                           "num_heads": 2, "num_classes": 4, "global_pool": "token", "layer_norm_eps": 1e-6}, 24, 4)


def convnext():
    torch.manual_seed(4)
    model = timm.models.convnext.ConvNeXt(depths=(1, 1, 1, 1), dims=(4, 8, 8, 12), num_classes=4)
    of_timm("convnext", model, {"architecture": "convnext", "depths": [1, 1, 1, 1], "dims": [4, 8, 8, 12],
                                "num_classes": 4, "layer_norm_eps": 1e-6}, 32, 4)


def vit_mean():
    """Without a class token; the norm follows the mean."""
    torch.manual_seed(5)
    model = timm.models.vision_transformer.VisionTransformer(img_size=24, patch_size=8, embed_dim=16, depth=1, num_heads=2,
                                                             num_classes=4, global_pool="avg", class_token=False)
    of_timm("vit_mean", model, {"architecture": "vit_base_patch16_224", "model_args": {"num_heads": 2}}, 24, 4)


VERSION_4 = {"vit.layers.": "vit.encoder.layer.", "attention.q_proj": "attention.attention.query",
             "attention.k_proj": "attention.attention.key", "attention.v_proj": "attention.attention.value",
             "attention.o_proj": "attention.output.dense", "mlp.fc1": "intermediate.dense", "mlp.fc2": "output.dense"}


def renamed(name, table):
    for now, then in table.items():
        name = name.replace(now, then)
    return name


def vit_transformers():
    torch.manual_seed(6)
    config = transformers.ViTConfig(image_size=24, patch_size=8, **TINY)
    config.num_labels = 4
    batch, labels = images(24, 4)
    make("vit_transformers", transformers.ViTForImageClassification(config), json.loads(config.to_json_string()), batch,
         labels, lambda m, b: m(**b).logits, rename=lambda n: renamed(n, VERSION_4))


def convnext_transformers():
    torch.manual_seed(7)
    config = transformers.ConvNextConfig(hidden_sizes=[4, 8, 8, 12], depths=[1, 1, 1, 1], drop_path_rate=0.0)
    config.num_labels = 4
    batch, labels = images(32, 4)
    make("convnext_transformers", transformers.ConvNextForImageClassification(config), json.loads(config.to_json_string()),
         batch, labels, lambda m, b: m(**b).logits)


def resnet_transformers():
    """Bottlenecks; their hidden_sizes are output channels."""
    torch.manual_seed(10)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[16, 24], depths=[2, 1])
    config.num_labels = 4
    batch, labels = images(32, 4, batch=8)
    make("resnet_transformers", transformers.ResNetForImageClassification(config), json.loads(config.to_json_string()),
         batch, labels, lambda m, b: m(**b).logits)


def convnext_regression():
    torch.manual_seed(11)
    config = transformers.ConvNextConfig(hidden_sizes=[4, 8, 8, 12], depths=[1, 1, 1, 1], drop_path_rate=0.0,
                                         problem_type="regression")
    config.num_labels = 2
    batch, _ = images(32, 2)
    make("convnext_regression", transformers.ConvNextForImageClassification(config), json.loads(config.to_json_string()),
         batch, torch.tensor([[3.5, -1.0], [0.25, 2.0], [-2.0, 0.5]], dtype=torch.float64), lambda m, b: m(**b).logits,
         criterion=torch.nn.MSELoss())


def resnet_labels():
    torch.manual_seed(12)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic",
                                       problem_type="multi_label_classification",
                                       id2label=dict(enumerate(["sunny", "very dark", "blurred"])))
    batch, _ = images(32, 3, batch=8)
    make("resnet_labels", transformers.ResNetForImageClassification(config), json.loads(config.to_json_string()), batch,
         torch.randint(0, 2, (8, 3)).double(), lambda m, b: m(**b).logits, criterion=torch.nn.BCEWithLogitsLoss())


def vit_torchvision():
    """A state dict without config.json, with the names of the published files."""
    torch.manual_seed(8)
    model = torchvision.models.VisionTransformer(image_size=24, patch_size=8, num_layers=1, num_heads=1, hidden_dim=64,
                                                 mlp_dim=24, num_classes=4)
    old = {"mlp.0.": "mlp.linear_1.", "mlp.3.": "mlp.linear_2."}
    of_timm("vit_torchvision", model, None, 24, 4, rename=lambda n: renamed(n, old))


def convnext_torchvision():
    torch.manual_seed(9)
    block = torchvision.models.convnext.CNBlockConfig
    model = torchvision.models.ConvNeXt([block(4, 8, 1), block(8, 8, 2), block(8, None, 1)], stochastic_depth_prob=0.0,
                                        num_classes=4)
    of_timm("convnext_torchvision", model, None, 32, 4)


ALL = [bert_classifier, bert_regression, distilbert_labels, bert_tagger, roberta_classifier, distilbert_tagger,
       electra_tagger, deberta_tagger, bert_masked,
       roberta_masked, distilbert_masked, electra_masked, deberta_masked, modernbert_classifier,
       modernbert_mean, modernbert_tagger, modernbert_masked, segformer, resnet, vit, vit_mean,
       vit_transformers, vit_torchvision, convnext, convnext_transformers, convnext_torchvision, resnet_transformers, convnext_regression,
       resnet_labels]

if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for maker in ALL:
        if len(sys.argv) < 2 or maker.__name__ in sys.argv[1:]:
            maker()
            print(maker.__name__)
