"""For reviewers: do the numbers of a table follow from the runs behind it, and those of papers from their own cells?

Run it as a script, or cell by cell in an editor that knows `# %%`. It trains nothing: it reads the stored runs of
results/nano-3, adds up with plain Python, and compares with what `fmtlbench leaderboard` prints. Takes seconds.
"""

# %% Every run is a folder, and summary.json has the last round's scores.
import json
import subprocess
import sys
from collections import defaultdict
from csv import DictReader
from pathlib import Path
from statistics import mean, stdev

RUNS = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "results" / "nano-3"

summaries = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(RUNS.rglob("summary.json"))]
print(f"{len(summaries)} finished runs in {RUNS.name}")

# %% Were they made alike? Runs may share a table only if setting, data and rounds agree.
for scenario in sorted({summary["scenario"] for summary in summaries}):
    mine = [summary for summary in summaries if summary["scenario"] == scenario]
    for key in ("setting", "rounds", "preset", "data_fingerprints", "numerics"):
        assert len({json.dumps(summary[key], sort_keys=True) for summary in mine}) == 1, (scenario, key)
    torch = sorted({summary["versions"]["torch"] for summary in mine})
    print(f"{scenario}: {len(mine)} runs of one setting, torch {', '.join(torch)}")


# %% A column is the mean over the clients that have the task; Δm, the mean relative change against Local, seed by seed.
def columns_of(summary: dict) -> dict[str, tuple[float, bool]]:
    """Return column → (value, whether higher is better) of a run, on the global test images."""
    found, up = defaultdict(list), {}
    for score in summary["scores"]:
        if score["primary"] and score["split"] == "global":
            key = "/".join((score["dataset"], score["task"], score["metric"]))
            found[key].append(score["value"])
            up[key] = score["higher_is_better"]
    return {key: (mean(values), up[key]) for key, values in found.items()}


def delta_m(ours: dict, reference: dict) -> float:
    """Return Δm in percent."""
    changes = [(value - reference[key][0]) / reference[key][0] * (1 if up else -1) for key, (value, up) in ours.items()]
    return 100 * mean(changes)


table = defaultdict(dict)  # (scenario, method) → seed → columns
for summary in summaries:
    table[summary["scenario"], summary["title"]][summary["seed"]] = columns_of(summary)

# %% The leaderboard as CSV: full precision, so that the comparison is not about rounding.
command = [sys.executable, "-m", "fmtlbench", "leaderboard", str(RUNS), "--format", "csv"]
printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
rows = {(row["table"].split("-")[0], row["method"]): row for row in DictReader(printed.splitlines())}
assert rows.keys() == table.keys()

checked, worst = 0, 0.0
for (scenario, method), seeds in sorted(table.items()):
    row, local = rows[scenario, method], table[scenario, "Local"]
    recomputed = {"delta_m": mean(delta_m(columns, local[seed]) for seed, columns in seeds.items())}
    for key in next(iter(seeds.values())):
        values = [columns[key][0] for columns in seeds.values()]
        recomputed |= {key: mean(values), f"{key}_std": stdev(values)}
    assert int(row["seeds"]) == len(seeds)
    for key, value in recomputed.items():
        gap = abs(float(row[key]) - value)
        assert gap < 1e-9, f"{scenario}, {method}, {key}: printed {row[key]}, recomputed {value}"
        checked, worst = checked + 1, max(worst, gap)
    print(f"{scenario:10} {method:8} {len(seeds):2} seeds  Δm {recomputed['delta_m']:+7.2f}")
print(f"{checked} numbers of the leaderboard follow from the runs; the largest gap is {worst:.1e}")

# %% Is the best one really better? The interval of Δm, over seeds, must leave out 0.
for (scenario, method), row in sorted(rows.items()):
    if row["delta_m_low"]:
        low, high = float(row["delta_m_low"]), float(row["delta_m_high"])
        verdict = "better" if low > 0 else "worse" if high < 0 else "cannot be told apart from Local"
        print(f"{scenario:10} {method:8} [{low:+.2f}, {high:+.2f}]  {verdict}")

# %% The same question for papers: does each printed Δ follow from the cells beside it?
command = [sys.executable, "-m", "fmtlbench", "papers", "list", "--audit"]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
