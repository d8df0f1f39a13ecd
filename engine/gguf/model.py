"""What a Muse Glimmer model file must hold, and what the rest of Glimmer wants to know of it.

Everything llama.cpp would assert on is checked here: keys and their ranges, the vocabulary, the special
tokens of the chat format, and the name, shape and type of every tensor it will ask for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.chat_format import Marker
from engine.gguf.file import GgufFile, TensorType, Value, ValueType, read_gguf
from engine.gguf.keys import CHOOSE_GLIMMER, Keys, printable
from engine.gguf.network import check_network
from engine.gguf.vocabulary import MAX_VOCABULARY, read_vocabulary
from engine.protocol import Sampling

ARCHITECTURE = "muse-glimmer"
REQUIRED_MARKERS = (Marker.BOS, Marker.START, Marker.MESSAGE, Marker.EOM, Marker.EOT)

_MAX_LAYERS = 512
_PERIOD = 4
"""Every fourth layer is global where a file does not say otherwise."""
_MAX_WIDTH = 1 << 17
_MAX_CONTEXT = 1 << 24
_SPECIAL_TYPES = (3, 4)


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the network."""

    layers: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    head: int
    window: int
    local: tuple[bool, ...]
    """Which layers attend to the last `window` tokens only; the others see all of the context."""


@dataclass(frozen=True, slots=True)
class WeightSizes:
    """Bytes of the tensors, by where llama.cpp puts them: the embedding stays in main memory."""

    embedding: int
    layers: tuple[int, ...]
    output: int

    @property
    def total(self) -> int:
        return self.embedding + sum(self.layers) + self.output


@dataclass(frozen=True, slots=True)
class Head:
    """What becomes of the head's scores: they are scaled, then bounded by cap * tanh(score / cap); a cap of 0
    does not bound them."""

    scale: float
    cap: float


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """A checked model file. `special_ids` maps the text of each `<|...|>` token to its id."""

    path: Path
    name: str
    is_demo: bool
    context_length: int
    shape: Shape
    vocabulary_size: int
    special_ids: Mapping[str, int]
    chat_template: str
    sampling: Sampling
    weights: WeightSizes
    head: Head = Head(1.0, 0.0)


def read_model_file(path: Path) -> ModelMetadata:
    """Check that `path` is a Muse Glimmer model that llama.cpp can load. Raises ModelError."""
    file = read_gguf(path)
    keys = Keys(file, ARCHITECTURE)
    _check_family(keys)
    shape = _shape(keys)
    context_length = keys.size("context_length", 1, _MAX_CONTEXT)
    check_network(keys, shape.width, shape.head)
    head = _head(keys)
    tokens = read_vocabulary(keys)
    _check_tensors(file, keys, shape, len(tokens))
    return ModelMetadata(
        path=path,
        name=printable(keys.optional("general.name", ValueType.STRING, path.stem)) or path.stem,
        is_demo=keys.optional("glimmer.demo", ValueType.BOOL, False),
        context_length=context_length,
        shape=shape,
        vocabulary_size=len(tokens),
        special_ids=_special_ids(keys, tokens),
        chat_template=keys.optional("tokenizer.chat_template", ValueType.STRING, ""),
        sampling=_sampling(keys),
        weights=weight_sizes(file, shape.layers),
        head=head,
    )


def weight_sizes(file: GgufFile, layers: int) -> WeightSizes:
    """How the tensors of `file` share its bytes."""
    of_layer = [0] * layers
    embedding = output = 0
    for tensor in file.tensors.values():
        first, _, rest = tensor.name.partition(".")
        number = rest.partition(".")[0]
        if first == "token_embd":
            embedding += tensor.nbytes
        elif first == "blk" and number.isdecimal() and int(number) < layers:
            of_layer[int(number)] += tensor.nbytes
        else:
            output += tensor.nbytes
    return WeightSizes(embedding, tuple(of_layer), output)


def _check_family(keys: Keys) -> None:
    architecture = keys.optional("general.architecture", ValueType.STRING, "")
    if architecture == "clip":
        keys.fail(
            "It is a vision projector (mmproj), not a language model.",
            "Give it as the projector, and a Muse Glimmer model beside it.",
        )
    if architecture == "dflash":
        keys.fail(
            "It is a drafter, not a language model.",
            "Give it as the drafter, and a Muse Glimmer model beside it.",
        )
    if architecture != ARCHITECTURE:
        family = repr(printable(architecture)) if architecture else "not named"
        keys.fail(
            f"Its model family is {family}, and Glimmer knows only the chat format of Muse Glimmer: "
            "with another family it would misread answers and tool calls.",
            CHOOSE_GLIMMER,
        )
    if (kind := keys.optional("general.type", ValueType.STRING, "model")) != "model":
        keys.fail(f"It holds a {printable(kind)}, not a model.", CHOOSE_GLIMMER)
    split = keys.get("split.count")
    if split is not None and split.value not in (0, 1):
        keys.fail("It is one part of a split model.", "Join the parts with `llama-gguf-split --merge`.")


def _shape(keys: Keys) -> Shape:
    layers = keys.size("block_count", 2, _MAX_LAYERS)
    shape = Shape(
        layers=layers,
        width=keys.size("embedding_length", 1, _MAX_WIDTH),
        feed_forward=keys.size("feed_forward_length", 1, _MAX_WIDTH),
        heads=keys.size("attention.head_count", 1, 1024),
        kv_heads=keys.size("attention.head_count_kv", 1, 1024),
        head=keys.size("attention.key_length", 2, 1024),
        window=keys.size("attention.sliding_window", 1, _MAX_CONTEXT),
        local=_local_layers(keys, layers),
    )
    if shape.heads % shape.kv_heads:
        keys.fail(f"Its {shape.heads} attention heads cannot share {shape.kv_heads} key-value heads.")
    return shape


def _head(keys: Keys) -> Head:
    if not keys.optional(keys.full("attention.causal"), ValueType.BOOL, True):
        keys.fail("It is not a model that writes text from left to right.", CHOOSE_GLIMMER)
    scale, cap = keys.real("logit_scale", 1e-6, 1e6), 0.0
    if keys.get(keys.full("final_logit_softcapping")):
        cap = keys.real("final_logit_softcapping", 0.0, 1e6)
    return Head(scale, cap)


def _local_layers(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Which layers are local: a flag a layer, or a period whose last layer is global."""
    name = keys.full("attention.sliding_window_pattern")
    given = keys.get(name)
    if given is None or not given.is_array:
        period = _PERIOD if given is None else keys.optional(name, ValueType.UINT32, 0)
        if given is not None and not 2 <= period <= layers:
            keys.fail(f"Its key {name} is not a usable period of layers.")
        return tuple(number % period < period - 1 for number in range(layers))
    flags = given.value if isinstance(given.value, tuple) else ()
    if given.items is not ValueType.BOOL or len(flags) != layers or len(set(flags)) != 2:
        keys.fail(f"Its key {name} does not name the local and the global layers.")
    return tuple(map(bool, flags))


def _special_ids(keys: Keys, tokens: tuple[str, ...]) -> dict[str, int]:
    types = keys.array("tokenizer.ggml.token_type", ValueType.INT32)
    special = {
        text: number for number, text in enumerate(tokens) if text.startswith("<|") and text.endswith("|>")
    }
    for marker in REQUIRED_MARKERS:
        if (number := special.get(marker.value)) is None:
            keys.fail(f"Its vocabulary lacks {marker.value}, a token of the chat format.", CHOOSE_GLIMMER)
        if types[number] not in _SPECIAL_TYPES:
            keys.fail(f"Its vocabulary takes {marker.value} for ordinary text.", CHOOSE_GLIMMER)
    return special


def _check_tensors(file: GgufFile, keys: Keys, shape: Shape, vocabulary: int) -> None:
    expected = dict(_expected_tensors(shape, vocabulary))
    for name, size in expected.items():
        tensor = file.tensors.get(name)
        if tensor is None:
            keys.fail(f"It lacks the tensor {name}.")
        if tensor.shape != size:
            keys.fail(f"Its tensor {name} has the shape {tensor.shape} where {size} is needed.")
    for tensor in file.tensors.values():
        is_matrix = tensor.name in expected and len(tensor.shape) == 2
        if not is_matrix and tensor.type is not TensorType.F32:
            keys.fail(f"Its tensor {tensor.name!r} is stored as {tensor.type.name} where F32 is needed.")


def _expected_tensors(shape: Shape, vocabulary: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor llama.cpp asks for, with its shape from the fastest dimension."""
    width, wide = shape.width, shape.feed_forward
    queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
    yield "token_embd.weight", (width, vocabulary)
    yield "output_norm.weight", (width,)
    yield "output.weight", (width, vocabulary)
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm": (width,),
        "post_attention_norm": (width,),
        "ffn_norm": (width,),
        "post_ffw_norm": (width,),
        "attn_q_norm": (shape.head,),
        "attn_k_norm": (shape.head,),
        "attn_q": (width, queries),
        "attn_k": (width, keys),
        "attn_v": (width, keys),
        "attn_gate": (width, queries),
        "attn_output": (queries, width),
        "ffn_up": (width, wide),
        "ffn_gate": (width, wide),
        "ffn_down": (wide, width),
    }
    for number in range(shape.layers):
        for name, size in layer.items():
            yield f"blk.{number}.{name}.weight", size


def _sampling(keys: Keys) -> Sampling:
    """The model's own sampling where its file carries a possible one, else that of its card."""
    card = Sampling()
    temperature = _number(keys.get("general.sampling.temp"), card.temperature)
    top_p = _number(keys.get("general.sampling.top_p"), card.top_p)
    top_k = _number(keys.get("general.sampling.top_k"), card.top_k)
    return Sampling(
        temperature=temperature if 0.0 <= temperature <= 100.0 else card.temperature,
        top_p=top_p if 0.0 < top_p <= 1.0 else card.top_p,
        top_k=int(top_k) if 0 <= top_k <= MAX_VOCABULARY else card.top_k,
    )


def _number(found: Value | None, default: float) -> float:
    if found is None or isinstance(found.value, str | tuple):
        return default
    return float(found.value)
