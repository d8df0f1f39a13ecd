"""Measure the encoder through llama.cpp: `python -m nano.vision.check --out DIR --fonts DIR MMPROJ.gguf`.

Two hundred unseen screens are attached to a wish, and the bundled model goes on by itself. Reported:

- said: the function it says fails is exactly the one on the screen;
- spelled: the vectors' nearest tokens, put together, hold exactly `::test_NAME` before a message or the end;
- how far llama.cpp's vectors are from PyTorch's, on the first screens.
"""

import argparse
import re
import threading
from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image as Pillow

from engine.loading import EngineOptions, Loaded, load
from engine.messages import Image, Message, Text
from engine.protocol import ReasoningDelta, Request, Sampling
from engine.vision.grid import grid_of
from glimmer_tui.agent.prompt import system_message
from nano.tokenizer import Encoder
from nano.vision.drawing import scaled
from nano.vision.encoder import Eye
from nano.vision.exam import Question, questions
from nano.vision.export import load_eye
from nano.vision.sight import sighted_schemas
from nano.vision.train import encoder_of, table_with
from nano.vision.transcript import CELL

Vectors = npt.NDArray[np.float32]
WISHES = ("Fix what this shows.", "fix what this shows", "This fails. Fix it.", "Fix the failing test.")
CAP = 1196


def image_of(picture: npt.NDArray[np.uint8]) -> Image:
    """A picture as a PNG file."""
    buffer = BytesIO()
    Pillow.fromarray(picture).save(buffer, "PNG")
    return Image(buffer.getvalue(), picture.shape[1], picture.shape[0])


def vectors_of(loaded: Loaded, image: Image) -> Vectors:
    """What llama.cpp makes of a picture: [tokens, width]."""
    assert loaded.pictures is not None
    places = loaded.pictures.places(image)
    for _ in loaded.pictures.see(places, lambda: True):
        pass
    found = loaded.pictures.vectors(places)
    assert found is not None
    return found


def said(loaded: Loaded, image: Image, wish: str, image_first: bool) -> str:
    """What the model writes to itself about a picture."""
    parts = (image, Text(f" {wish}")) if image_first else (Text(f"{wish} "), image)
    history = (system_message(), Message("user", parts))
    request = Request(history, tuple(sighted_schemas()), "low", Sampling(temperature=0.0), max_tokens=40)
    deltas = loaded.generator.generate(request, threading.Event())
    return "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))


def failing(reasoning: str) -> str:
    """The function that it says fails; "" where it says none."""
    found = re.match(r"(\w+) fails\b", reasoning)
    return found[1] if found else ""


def spelled(vectors: Vectors, table: Vectors, encoder: Encoder) -> str:
    """The nearest tokens of a picture's cells as text, blanks and marks left out."""
    nearest = (vectors @ table.T).argmax(1)
    ids = [int(token) for token in nearest if token < encoder.size]
    return encoder.tokenizer.decode(ids)


def in_torch(eye: Eye, picture: npt.NDArray[np.uint8]) -> Vectors:
    """PyTorch's vectors of a picture."""
    grid = grid_of(picture.shape[1], picture.shape[0], CAP)
    pixels = scaled(picture, grid.columns * CELL, grid.rows * CELL).astype(np.float32) / 127.5 - 1.0
    with torch.no_grad():
        return eye(torch.from_numpy(pixels).permute(2, 0, 1)[None].contiguous())[0][0].numpy()


def agreement(theirs: Vectors, ours: Vectors) -> Vectors:
    """Cosines of two pictures' vectors."""
    return (theirs * ours).sum(1) / (np.linalg.norm(theirs, axis=1) * np.linalg.norm(ours, axis=1))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projector", type=Path)
    parser.add_argument("--model", type=Path, default=Path("glimmer_tui/models/glimmer-nano.gguf"))
    parser.add_argument("--out", type=Path, default=Path("nano/out/vision"), help="holds eye.pt and marks.pt")
    parser.add_argument("--fonts", type=Path)
    parser.add_argument("--screens", type=int, default=200)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--show", type=int, default=5, help="how many mistakes to print")
    options = parser.parse_args()
    torch.set_num_threads(2)
    encoder = encoder_of(options.model, options.out)
    table = table_with(options.model, options.out / "marks.pt").numpy()
    eye = load_eye(options.out / "eye.pt")
    loaded = load(options.model, EngineOptions(8192, 2, projector=options.projector, picture_tokens=CAP))
    score: Counter[str] = Counter()
    widths: dict[int, list[bool]] = {}
    cosines: list[Vectors] = []
    same = cells = 0
    asked = list(questions(options.seed, options.fonts, options.screens))
    for number, question in enumerate(asked):
        image = image_of(question.picture)
        vectors = vectors_of(loaded, image)
        if number < 20:
            ours = in_torch(eye, question.picture)
            cosines.append(agreement(vectors, ours))
            same += int(((vectors @ table.T).argmax(1) == (ours @ table.T).argmax(1)).sum())
            cells += len(ours)
        told = said(loaded, image, WISHES[number % len(WISHES)], number % 2 == 0)
        text = spelled(vectors, table, encoder)
        hit = failing(told) == question.name
        read = re.search(rf"::test_{question.name}(?: -|$|\W)", text) is not None
        score.update(said=hit, spelled=read)
        widths.setdefault(question.wide, []).append(hit)
        if not hit and score["shown"] < options.show:
            score["shown"] += 1
            print(
                f"  {question.name} ({question.wide} px): says {told[:60]!r}, spells {text[:90]!r}",
                flush=True,
            )
    report(score, widths, asked)
    if cosines:
        every = np.concatenate(cosines)
        print(
            f"llama.cpp and PyTorch: cosine {every.min():.4f} at least, {every.mean():.5f} on average; "
            f"nearest tokens the same in {same} of {cells} cells"
        )
    loaded.close()


def report(score: Counter[str], widths: dict[int, list[bool]], asked: list[Question]) -> None:
    """Print how many names were right."""
    count = len(asked)
    print(f"said {score['said']} of {count} ({score['said'] / count:.1%}), spelled {score['spelled']}")
    for wide, hits in sorted(widths.items()):
        print(f"  characters of {wide} px: {sum(hits)} of {len(hits)}")


if __name__ == "__main__":
    main()
