import json
import random
import tempfile
from pathlib import Path

import pytest

from nano.corpus import encode_line
from nano.expert import trajectory
from nano.rename import renamed, words


@pytest.mark.parametrize("seed", range(4))
def test_a_renamed_conversation_is_the_same_but_for_its_names(seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        old = json.loads(encode_line(trajectory(rng, Path(scratch))))
    new = renamed(old, frozenset(), rng)
    assert new != old
    assert [weight for weight, _ in new] == [weight for weight, _ in old]
    changed: dict[str, str] = {}
    for (_, before), (_, after) in zip(old, new, strict=True):
        assert len(before) == len(after) and before[1] == after[1]
        for piece, other in zip(before, after, strict=True):
            if isinstance(piece, str):
                pairs = zip(_parts(piece), _parts(other), strict=True)
                assert all(changed.setdefault(a, b) == b for a, b in pairs)
    assert len(set(changed.values())) == len(changed)


def test_a_name_that_a_misspelt_one_resembles_stays() -> None:
    text = "def scale_price(basket):\n    return baskt"
    user = [{"marker": "<|start|>"}, "user", {"marker": "<|message|>"}, text]
    ((_, pieces),) = renamed([[1.0, user]], frozenset(), random.Random(1))
    assert {"basket", "baskt"} <= words([[1.0, pieces]])


def _parts(text: str) -> list[str]:
    return "".join(c if c.islower() else " " for c in text).split()
