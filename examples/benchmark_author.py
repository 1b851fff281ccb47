"""For authors of benchmarks: bring images in a folder and a scenario, run a small grid, write a leaderboard.

Run it as a script, or cell by cell in an editor that knows `# %%`. The images are drawn here, so that nothing has to be
fetched; put your own in their place. It takes under a minute on one core.
"""

# %% A dataset is a folder: images, a folder of labels per task, two lists of names and a few lines of YAML.
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(sys.argv[1] if len(sys.argv) > 1 else "examples_out/benchmark_author").absolute()
DATA = HERE / "discs"
SIZE = 48


def draw(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw a disc before a wall: the picture, what each pixel shows, and how far away it is."""
    rows, columns = np.mgrid[:SIZE, :SIZE]
    row, column, radius = rng.uniform((12, 12, 6), (36, 36, 12))
    disc = (rows - row) ** 2 + (columns - column) ** 2 < radius**2
    depth = np.where(disc, rng.uniform(1, 2), 4 + rows / SIZE).astype(np.float32)
    shade = np.where(disc, 200, 90)[..., None] / depth[..., None] ** 0.3
    picture = np.clip(shade * rng.uniform(0.8, 1.2, 3) + rng.normal(0, 8, (SIZE, SIZE, 3)), 0, 255)
    return {"images": picture.astype(np.uint8), "semseg": disc.astype(np.uint8), "depth": depth}


rng = np.random.default_rng(0)
for split, count in (("train", 24), ("test", 8)):
    names = [f"{split}_{number}" for number in range(count)]
    for name in names:
        for kind, array in draw(rng).items():
            (DATA / kind).mkdir(parents=True, exist_ok=True)
            if kind == "depth":
                np.save(DATA / kind / f"{name}.npy", array)
            else:
                Image.fromarray(array).save(DATA / kind / f"{name}.png")
    (DATA / f"{split}.txt").write_text("\n".join(names) + "\n")
(DATA / "dataset.yml").write_text("title: Discs\ntasks:\n  semseg: {classes: [wall, disc]}\n  depth: {}\n")

# %% A scenario says who has which tasks. It names the data beside itself, so that nobody needs to type where they are.
(HERE / "discs.yml").write_text("""\
description: Two clients that segment, one that segments and measures
paper: none
version: 1
datasets: [discs/dataset.yml]
clients:
  - {dataset: discs, tasks: [semseg], count: 2}
  - {dataset: discs, tasks: [semseg, depth]}
""")


def fmtlbench(*words: str) -> str:
    """Type a command in the folder of the benchmark; return what it prints."""
    command = [sys.executable, "-m", "fmtlbench", *words]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


# %% Are the files what the description says? `--deep` opens every one of them.
print(fmtlbench("data", "check", "discs/dataset.yml", "--deep"))

# %% The grid: two methods, two seeds. What is done is not done again; --jobs uses more cores.
SMALL = ["--set=train.batch_size=4", "--set=data.size.discs=[32,32]"]
GRID = ["--algos", "local,fedavg", "--scenarios", "./discs.yml", "--seeds", "0-1"]
fmtlbench("bench", *GRID, "--rounds", "2", "--device", "cpu", "--no-energy", *SMALL)

# %% The leaderboard for people, for a spreadsheet, for a paper and as a web site without a server.
print(fmtlbench("leaderboard", "runs"))
for form, place in (("csv", "table.csv"), ("latex", "table.tex"), ("html", "site")):
    fmtlbench("leaderboard", "runs", "--format", form, "-o", place)
print("written:", *(path.relative_to(HERE) for path in sorted(HERE.glob("table.*"))), "site/index.html")
