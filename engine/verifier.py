"""Which of the drafted tokens stand. Pure.

Every position is drawn from the target's own scores; a draft is kept where it is what was drawn. So what is
written has the target's distribution, whatever drafted it (greedy or not).
"""

from collections.abc import Callable, Container, Sequence


def verified(drafted: Sequence[int], draw: Callable[[int], int], stops: Container[int]) -> list[int]:
    """The tokens to write, one at least. `draw(row)` draws from the scores after the row-th token read.

    Row 0 is the token before the drafts. All but the last returned token were drafted; drawing ends at
    the first that was not, or that ends the reply.
    """
    written: list[int] = []
    for row in range(len(drafted) + 1):
        token = draw(row)
        written.append(token)
        if token in stops or row == len(drafted) or token != drafted[row]:
            break
    return written
