"""Write the trained model as GGUF: `python -m nano.export --out nano/out`.

Matrices are stored as q8_0 (blocks of 32 along the rows), gains as f32. The tensor names and keys are those
that llama.cpp's `muse-glimmer` architecture asks for. Also stored: the chat template, the sampling defaults
(greedy) and `glimmer.demo`, by which Glimmer knows that this is a demonstration model.
"""

import argparse
import json
from importlib.resources import files
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType
from torch import Tensor

from nano.model import Glimmer, Shape
from nano.tokenizer import MASK, PAD, PRE_TOKENIZER, SPECIALS

ARCHITECTURE = "muse-glimmer"
LAYER_TENSORS = {
    "attn_norm": "attn_norm",
    "post_attention_norm": "attn_post",
    "ffn_norm": "ffn_norm",
    "post_ffw_norm": "ffn_post",
    "attn_q_norm": "q_norm",
    "attn_k_norm": "k_norm",
    "attn_q": "q.weight",
    "attn_k": "k.weight",
    "attn_v": "v.weight",
    "attn_gate": "gate.weight",
    "attn_output": "o.weight",
    "ffn_up": "ffn_up.weight",
    "ffn_gate": "ffn_gate.weight",
    "ffn_down": "ffn_down.weight",
}


def load_model(checkpoint: Path) -> Glimmer:
    """The model of a training checkpoint."""
    state = torch.load(checkpoint, weights_only=True)
    model = Glimmer(Shape(**state["shape"]))
    model.load_state_dict(state["model"])
    return model.eval()


def export(model: Glimmer, tokenizer: Path, target: Path, quantized: bool = True) -> None:
    """Write `model` and its vocabulary to `target`."""
    writer = gguf.GGUFWriter(target, ARCHITECTURE)
    _add_settings(writer, model.shape)
    add_vocabulary(writer, tokenizer)
    writer.add_chat_template(files("nano").joinpath("chat_template.jinja").read_text(encoding="utf-8"))
    own = dict(model.named_parameters())
    tensors = {
        "token_embd.weight": own["embedding.weight"],
        "output_norm.weight": own["norm"],
        "output.weight": own["head.weight"],
    }
    store(writer, tensors, own, LAYER_TENSORS, quantized)


def add_sizes(writer: gguf.GGUFWriter, shape: Shape) -> None:
    """Store the sizes of a network."""
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_width)
    writer.add_value_length(shape.head_width)
    writer.add_rope_dimension_count(shape.head_width)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.eps)
    writer.add_vocab_size(shape.vocab)


def store(
    writer: gguf.GGUFWriter,
    named: dict[str, Tensor],
    own: dict[str, Tensor],
    layer_tensors: dict[str, str],
    quantized: bool,
) -> None:
    """Write the `named` tensors and those of every layer, found in `own` by attribute, and end the file."""
    layers = len({name.split(".")[1] for name in own if name.startswith("layers.")})
    for index in range(layers):
        for name, attribute in layer_tensors.items():
            named[f"blk.{index}.{name}.weight"] = own[f"layers.{index}.{attribute}"]
    for name, tensor in named.items():
        add_tensor(writer, name, tensor, quantized)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_settings(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_name("Glimmer Nano")
    writer.add_description("Demonstration model of Glimmer: mends small bugs in small Python projects.")
    writer.add_license("apache-2.0")
    writer.add_bool("glimmer.demo", True)
    writer.add_float32("general.sampling.temp", 0.0)
    add_sizes(writer, shape)
    writer.add_sliding_window(shape.window)
    writer.add_sliding_window_pattern([shape.is_local(i) for i in range(shape.layers)])
    writer.add_final_logit_softcapping(shape.softcap)
    writer.add_logit_scale(shape.logit_scale)


def add_vocabulary(writer: gguf.GGUFWriter, tokenizer: Path) -> None:
    """Store the tokens, merges and special ids."""
    stored = json.loads(tokenizer.read_text(encoding="utf-8"))
    ids: dict[str, int] = stored["model"]["vocab"]
    tokens = sorted(ids, key=lambda token: ids[token])
    control = gguf.TokenType.CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PRE_TOKENIZER)
    writer.add_token_list(tokens)
    writer.add_token_types([control if token in SPECIALS else gguf.TokenType.NORMAL for token in tokens])
    writer.add_token_merges(
        [pair if isinstance(pair, str) else " ".join(pair) for pair in stored["model"]["merges"]]
    )
    writer.add_bos_token_id(ids["<|begin_of_text|>"])
    writer.add_eos_token_id(ids["<|end_of_text|>"])
    writer.add_eot_token_id(ids["<|eot|>"])
    writer.add_pad_token_id(ids[PAD])
    writer.add_mask_token_id(ids[MASK])
    writer.add_add_bos_token(False)


def add_tensor(writer: gguf.GGUFWriter, name: str, tensor: Tensor, quantized: bool) -> None:
    """Store a tensor; a matrix as q8_0 where `quantized`."""
    values = tensor.detach().float().numpy().astype(np.float32)
    if not quantized or values.ndim < 2:
        writer.add_tensor(name, values)
        return
    kind = GGMLQuantizationType.Q8_0
    writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def main() -> None:
    """Export the checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("nano/out"))
    parser.add_argument("--to", type=Path, default=Path("glimmer_tui/models/glimmer-nano.gguf"))
    parser.add_argument("--f32", action="store_true", help="store matrices in f32 instead of q8_0")
    options = parser.parse_args()
    options.to.parent.mkdir(parents=True, exist_ok=True)
    export(
        load_model(options.out / "checkpoint.pt"), options.out / "tokenizer.json", options.to, not options.f32
    )
    print(f"{options.to}: {options.to.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
