"""All tests on one set of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ...base.errors import UsageError, nearest
from ..delta import Reference
from .blocks import Blocks, make_blocks
from .pairs import Improvement, as_matrix, improvement, smallest_p, wilcoxon_pairs
from .ranks import Friedman, StatsError, average_ranks, block_ranks, critical_difference, friedman, nemenyi


@dataclass(frozen=True)
class Analysis:
    """What can be said of the methods; `friedman`, `nemenyi` and `cd` are None where there are too few of them."""

    blocks: Blocks
    alpha: float
    correction: str
    split: str
    ranks: pd.Series  # average rank per method, best first
    firsts: pd.Series  # in how many blocks a method is the best, or among them
    friedman: Friedman | None
    nemenyi: pd.DataFrame | None
    cd: float | None
    pairs: pd.DataFrame  # Wilcoxon, corrected
    improvement: Improvement | None
    notes: tuple[str, ...]  # about the blocks and the tests over all methods
    pair_notes: tuple[str, ...]  # about the tests of pairs
    refusal: str = ""  # why there is no test over all methods

    def wilcoxon_table(self) -> pd.DataFrame:
        """Return the corrected p of all pairs, methods by methods, best average rank first."""
        return as_matrix(self.pairs, list(self.ranks.index))


def analyse(
    frame: pd.DataFrame,
    scenarios: Sequence[str] = (),
    split: str = "global",
    correction: str = "holm",
    alpha: float = 0.05,
    pair: tuple[str, str] | None = None,
    reference: Reference | None = None,
    remarks: Sequence[str] = (),
) -> Analysis:
    """Compare the methods of the frame; see `make_blocks` for which runs enter.

    Args:
        frame: As `reports.collect` makes it.
        scenarios: Only these; all if empty.
        split: Which scores: global, personal or unseen.
        correction: Of the Wilcoxon tests: holm or bonferroni.
        alpha: The level of significance.
        pair: Labels of two methods, for the probability of improvement; with only two methods it is those.
        reference: Scores are compared as relative changes against these runs.
        remarks: What else is to be said of the runs.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"--alpha {alpha}: expected a number between 0 and 1")
    blocks = make_blocks(frame, scenarios, split, reference)
    matrix, notes = blocks.matrix, [*blocks.notes, *remarks]
    pairs = wilcoxon_pairs(matrix, correction, relative=blocks.mixed)
    overall = posthoc = cd = None
    refusal = ""
    try:
        overall, posthoc = friedman(matrix), nemenyi(matrix)
        cd = critical_difference(matrix.shape[1], len(matrix), alpha)
    except StatsError as error:
        refusal = str(error)
        notes.append(f"not tested: {refusal}")
    else:
        if overall.p >= alpha:
            notes.append(f"Friedman finds no difference at {alpha:g}: pairs are shown, and prove nothing by themselves")
    if pair is None and matrix.shape[1] == 2:
        pair = tuple(matrix)
    best = (block_ranks(matrix).eq(block_ranks(matrix).min(axis=1), axis=0)).sum()
    ranks = average_ranks(matrix)
    better = _improvement(blocks, pair) if pair else None
    return Analysis(
        blocks,
        alpha,
        correction,
        split,
        ranks,
        best[ranks.index],
        overall,
        posthoc,
        cd,
        pairs,
        better,
        tuple(notes),
        tuple(_pair_notes(blocks, alpha)),
        refusal,
    )


def _pair_notes(blocks: Blocks, alpha: float) -> list[str]:
    notes = []
    if blocks.mixed:
        notes.append(
            "blocks have different units: Wilcoxon ranks differences relative to the mean size of the two scores"
        )
    notes.append("Wilcoxon: two-sided, ranks of zero differences split between both sides, all zero gives p = 1")
    count = len(blocks.matrix)
    if (least := smallest_p(count)) >= alpha:
        notes.append(
            f"too few blocks for Wilcoxon to find a difference at {alpha:g}: with {count}, p is never below {least:g}"
        )
    return notes


def _improvement(blocks: Blocks, pair: tuple[str, str]) -> Improvement:
    for label in pair:
        if label not in blocks.matrix:
            raise UsageError(f"--pair: {label!r} is not among the methods compared; {nearest(label, blocks.matrix)}")
    a, b = pair
    return improvement(blocks.runs_of(a), blocks.runs_of(b), (a, b))


def find_pair(text: str, frame: pd.DataFrame) -> tuple[str, str]:
    """Find two labels in "A,B", each a label (which may hold commas itself) or an algorithm with one label."""
    known = {label.lower(): label for label in frame["label"].unique()}
    for name, labels in frame.groupby("algorithm")["label"].unique().items():
        if len(labels) == 1:
            known.setdefault(str(name).lower(), labels[0])
    words = text.split(",")
    cuts = [(",".join(words[:i]).strip().lower(), ",".join(words[i:]).strip().lower()) for i in range(1, len(words))]
    for a, b in cuts:
        if a in known and b in known and known[a] != known[b]:
            return known[a], known[b]
    if len(cuts) == 1:
        for name in cuts[0]:
            if name not in known:
                raise UsageError(f"--pair {text}: no method {name!r} among the runs; {nearest(name, known)}")
    raise UsageError(f"--pair {text}: expected two different methods, A,B; there are: {', '.join(known.values())}")
