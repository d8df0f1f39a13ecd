"""Practice in copying beside the first conversations: random tokens, and then the same ones again.

Most of the work of mending a bug is copying names and lines. Conversations alone teach that late; on random
tokens nothing else lowers the loss. The length changes from batch to batch, so that the place to copy from
must be found by what stands there and not by how far back it is; the longer ones reach beyond the local
window, which only the global layers can do.
"""

import torch

from nano.batches import Batch

FIRST_TOKEN = 300
"""Tokens below are markers and single bytes."""
LEARNED = 0.5
"""Practice is over when its running loss, in nats, falls below this."""
TOKENS = 1400
SHORTEST, LONGEST = 12, 330


def practice(vocab: int) -> Batch:
    """A batch of rows of random tokens, each said twice or more.

    The first saying, which cannot be known, and the first token of each later one have no loss.
    """
    length = int(torch.exp(torch.empty(()).uniform_(2.5, 5.8)).clamp(SHORTEST, LONGEST))
    times = 2 if length > 100 else 4
    rows = max(2, TOKENS // (length * times))
    ids = torch.randint(FIRST_TOKEN, vocab, (rows, length)).repeat(1, times)
    weights = torch.ones_like(ids, dtype=torch.float32)
    weights[:, : length + 1] = 0.0
    return Batch(ids, weights, torch.full_like(ids, -1))
