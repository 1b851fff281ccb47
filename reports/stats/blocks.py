"""From the frame of finished runs to the matrix the tests work on: blocks (scenario, client, task) by methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ...base.errors import unknown
from ..delta import Delta, Reference, mean_units, primary_scores
from .pairs import Runs
from .ranks import StatsError

BLOCK = ["scenario", "client", "task"]


@dataclass(frozen=True)
class Blocks:
    """A complete table of scores, and what it was made of."""

    matrix: pd.DataFrame  # [blocks, methods]: mean over seeds, signed so that higher is better
    scores: pd.DataFrame  # the same per seed: scenario, client, task, label, seed, score
    metrics: tuple[str, ...]
    notes: tuple[str, ...]
    relative: bool = False  # scores are changes in percent against a reference

    @property
    def mixed(self) -> bool:
        """Whether blocks are of different metrics: their differences have no common unit."""
        return len(self.metrics) > 1 and not self.relative

    def runs_of(self, label: str) -> list[Runs]:
        """Return the method's scores by scenario: a row per seed, a column per block."""
        own = self.scores[self.scores["label"] == label]
        found = []
        for scenario, blocks in self.matrix.groupby(level=0):
            table = own[own["scenario"] == scenario].pivot_table(index="seed", columns=BLOCK[1:], values="score")
            columns = [block[1:] for block in blocks.index]
            found.append(Runs(tuple(table.index), table[columns].to_numpy()))
        return found


def make_blocks(
    frame: pd.DataFrame, scenarios: Sequence[str] = (), split: str = "global", reference: Reference | None = None
) -> Blocks:
    """Return the largest complete table of primary scores among comparable runs; nothing is filled in.

    Args:
        frame: As `reports.collect` makes it.
        scenarios: Only these; all if empty.
        split: Which scores: global, personal or unseen.
        reference: Scores become relative changes against these runs (the mean over their seeds and clients).

    Raises:
        StatsError: If no two methods have a common block.
    """
    notes: list[str] = []
    rows = _chosen(frame, scenarios, split)
    rows = comparable(rows, notes)
    rows = _with_holes(_once(rows, notes))
    if split != "personal":  # the same images for all
        rows = _collapse(rows, notes)
    if rows["higher_is_better"].isna().any():
        names = sorted(rows.loc[rows["higher_is_better"].isna(), "metric"].unique())
        raise StatsError(f"these runs do not say whether more or less is better of {', '.join(names)}")
    rows = rows.assign(sign=rows["higher_is_better"].map({True: 1.0, False: -1.0}))
    rows = rows.assign(score=rows["value"] * rows["sign"])
    if reference is not None:
        rows = _relative(rows, reference, split, notes)
    # A seed without a score leaves a hole (skipna=False): the mean of the others would be of other seeds.
    table = rows.groupby([*BLOCK, "label"])["score"].agg(lambda s: s.mean(skipna=False)).unstack("label")
    table = _complete(table.round(10), notes)
    kept = rows.set_index(BLOCK).loc[lambda r: r.index.isin(table.index)].reset_index()
    kept = kept[kept["label"].isin(table.columns)]
    notes.insert(0, _seeds(kept))
    metrics = tuple(sorted(kept["metric"].unique()))
    return Blocks(table, kept[[*BLOCK, "label", "seed", "score"]], metrics, tuple(notes), reference is not None)


def _chosen(frame: pd.DataFrame, scenarios: Sequence[str], split: str) -> pd.DataFrame:
    if frame.empty:
        raise StatsError("no finished run has a score")
    rows = frame[frame["primary"].astype(bool)]
    for name in scenarios:
        if name not in set(rows["scenario"]):
            raise unknown("scenario", name, set(rows["scenario"]), "--scenario")
    if scenarios:
        rows = rows[rows["scenario"].isin(scenarios)]
    if split not in set(rows["split"]):
        raise unknown("split with scores", split, set(rows["split"]), "--split")
    return rows[rows["split"] == split]


def comparable(rows: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return of each scenario the setting with the most methods, then runs: others are not compared with it."""
    kept = []
    for scenario, of in rows.groupby("scenario", sort=True):
        counts = of.groupby(["setting", "data_key"]).agg(methods=("label", "nunique"), runs=("run", "nunique"))
        best = counts.sort_values(["methods", "runs"], ascending=False, kind="stable").index[0]
        mine = (of["setting"] == best[0]) & (of["data_key"] == best[1])
        kept.append(of[mine])
        if len(counts) > 1:
            notes.append(
                f"{scenario}: {len(counts)} settings among the runs; compared is {_short(best[0])} with "
                f"{counts.loc[best, 'methods']} methods, left out are {of.loc[~mine, 'run'].nunique()} runs of others"
            )
    return pd.concat(kept)


def _short(setting: str) -> str:
    return f"setting {setting[:14] if setting.startswith('older-') else setting[:8]}"


def _once(rows: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Count a run that lies in two places once."""
    again = rows.duplicated([*BLOCK, "metric", "label", "seed"])
    if again.any():
        notes.append(f"left out {rows.loc[again, 'run'].nunique()} runs that repeat a method, setting and seed")
    return rows[~again]


def _with_holes(rows: pd.DataFrame) -> pd.DataFrame:
    """Add a row without a value for every score that a run lacks and the method's run of another seed has."""
    about = [*BLOCK, "group", "dataset", "metric", "higher_is_better", "label"]
    seeds = rows[["scenario", "label", "seed"]].drop_duplicates()
    wanted = rows[about].drop_duplicates().merge(seeds, on=["scenario", "label"])
    return wanted.merge(rows[[*about, "seed", "value"]], on=[*about, "seed"], how="left")


def _collapse(rows: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Average alike clients, which share the global images and often the model: they are one block."""
    before = len(rows[BLOCK].drop_duplicates())
    keys = ["scenario", "group", "dataset", "task", "metric", "higher_is_better", "label", "seed"]
    means = rows.groupby(keys, dropna=False, sort=False)["value"].agg(lambda s: s.mean(skipna=False)).reset_index()
    means = means.rename(columns={"group": "client"})
    after = len(means[BLOCK].drop_duplicates())
    if after < before:
        notes.append(
            f"{before} blocks were collapsed to {after}: alike clients (same dataset and tasks), which share the "
            "global test images, are one block, their mean"
        )
    return means


def _relative(rows: pd.DataFrame, reference: Reference, split: str, notes: list[str]) -> pd.DataFrame:
    """Return scores as changes in percent against the reference's columns, up is better, without blocks it lacks."""
    every = [Delta().units(primary_scores(run.summary["scores"], split)[0]) for run in reference.runs.values()]
    base = mean_units(every)
    at = [base.get((d, t, m), float("nan")) for d, t, m in zip(rows["dataset"], rows["task"], rows["metric"])]
    sizes = pd.Series(at, index=rows.index).abs()
    if missing := int((~(sizes > 0)).sum()):
        lost = sorted({f"{d}/{t}" for d, t, s in zip(rows["dataset"], rows["task"], sizes) if not s > 0})
        notes.append(f"left out {missing} scores ({', '.join(lost)}), which {reference.title} does not have")
    notes.append(f"scores are changes in percent against {reference.title}")
    if not (sizes > 0).any():
        raise StatsError(f"{reference.title} has none of the columns (dataset, task) of these runs")
    return rows.assign(score=100 * (rows["score"] - rows["sign"] * sizes) / sizes)[sizes > 0]


def _complete(table: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the largest table (methods × blocks) without a hole; methods with more blocks are tried first."""
    covered = table.notna().sum().sort_values(ascending=False, kind="stable")
    best, size = None, 0
    for k in range(2, len(covered) + 1):
        candidate = table[list(covered.index[:k])].dropna()
        if candidate.size >= size and len(candidate):
            best, size = candidate, candidate.size
    if best is None:
        names = ", ".join(map(str, table)) or "none"
        raise StatsError(f"no two methods have a common block (scenario, client, task); methods with scores: {names}")
    best = best[[label for label in table if label in best]]
    if left := [label for label in table if label not in best]:
        notes.append(f"left out, since they lack blocks the others have: {', '.join(left)}")
    if missing := len(table) - len(best):
        holes = int(table[list(best)].isna().sum().sum())
        notes.append(f"dropped {missing} of {len(table)} blocks, which lack {holes} scores of a method compared")
    return best


def _seeds(rows: pd.DataFrame) -> str:
    """Say which seeds went into the means."""
    seeds = {label: tuple(sorted(of.unique())) for label, of in rows.groupby("label")["seed"]}
    if len(set(seeds.values())) == 1:
        text = ", ".join(map(str, next(iter(seeds.values()))))
        return f"scores are means over seeds ({text}), taken before ranking"
    each = "; ".join(f"{label}: {', '.join(map(str, own))}" for label, own in seeds.items())
    return f"scores are means over seeds, taken before ranking; methods have different seeds ({each})"
