"""Read the model and its tokenizer back from a GGUF: to train on from it, or to train its drafter."""

from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import AddedToken, Tokenizer, models

from nano.export import ARCHITECTURE, LAYER_TENSORS
from nano.model import Glimmer, Shape
from nano.tokenizer import SPECIALS, with_pieces


def restore_model(path: Path) -> Glimmer:
    """The model of a GGUF made by nano.export; q8_0 weights come back within their rounding."""
    reader = GGUFReader(path)
    model = Glimmer(_shape(reader))
    tensors = {
        tensor.name: torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
        for tensor in reader.tensors
    }
    own = {
        "embedding.weight": tensors["token_embd.weight"],
        "norm": tensors["output_norm.weight"],
        "head.weight": tensors["output.weight"],
    }
    for index in range(model.shape.layers):
        for name, attribute in LAYER_TENSORS.items():
            own[f"layers.{index}.{attribute}"] = tensors[f"blk.{index}.{name}.weight"]
    model.load_state_dict(own)
    return model


def restore_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a GGUF made by nano.export."""
    reader = GGUFReader(path)
    tokens = reader.get_field("tokenizer.ggml.tokens").contents()
    merges = [tuple(pair.split(" ")) for pair in reader.get_field("tokenizer.ggml.merges").contents()]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = with_pieces(Tokenizer(models.BPE(vocab=vocabulary, merges=merges)))
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIALS])
    return tokenizer


def _shape(reader: GGUFReader) -> Shape:
    def value(name: str) -> float:
        return reader.get_field(f"{ARCHITECTURE}.{name}").contents()

    return Shape(
        vocab=int(value("vocab_size")),
        width=int(value("embedding_length")),
        layers=int(value("block_count")),
        heads=int(value("attention.head_count")),
        kv_heads=int(value("attention.head_count_kv")),
        head_width=int(value("attention.key_length")),
        ffn=int(value("feed_forward_length")),
        window=int(value("attention.sliding_window")),
        rope_base=value("rope.freq_base"),
        softcap=value("final_logit_softcapping"),
        logit_scale=value("logit_scale"),
        eps=value("attention.layer_norm_rms_epsilon"),
        context=int(value("context_length")),
    )
