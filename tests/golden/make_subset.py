"""Write the golden files of this folder anew from the full set: python tests/golden/make_subset.py <folder>.

Arrays that no test reads are left out; those that stay keep every bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent

# Names in the full set.
CHOSEN = (
    # FedHCA²'s code: all regimes of one case, one regime of the others and of each ablation
    "A_aggregation/layout_*.json",
    "A_aggregation/fedhca2repo_st_mt_1_fedhca2_*.npz",
    "A_aggregation/fedhca2repo_st_mt_1_enc_only_strong.npz",
    "A_aggregation/fedhca2repo_st_mt_1_dec_only_moderate.npz",
    "A_aggregation/fedhca2repo_st_mt_1_fedavg_moderate.npz",
    "A_aggregation/fedhca2repo_st_mt_2_fedhca2_strong.npz",
    "A_aggregation/fedhca2repo_st_interleaved_fedhca2_moderate.npz",
    # FMTL-Bench's code: every method, all regimes where the solver depends on them; clients alike and unlike
    "A_aggregation/fmtlrepo_homog4_cagrad_*.npz",
    "A_aggregation/fmtlrepo_hetero6_cagrad_moderate.npz",
    "A_aggregation/fmtlrepo_homog4_fedamp_sigma1_moderate.npz",
    "A_aggregation/fmtlrepo_homog4_fedamp_close_small.npz",
    "A_aggregation/fmtlrepo_hetero6_fedamp_sigma10_large.npz",
    "A_aggregation/fmtlrepo_homog4_fedavg_moderate.npz",
    "A_aggregation/fmtlrepo_homog4_manytask_small.npz",
    "A_aggregation/fmtlrepo_hetero6_manytask_large.npz",
    "A_aggregation/fmtlrepo_homog4_pcgrad_large.npz",
    "A_aggregation/fmtlrepo_hetero6_pcgrad_small.npz",
    # MaT-FL's code: the groupings, and once each what they are compared with
    "A_aggregation/matflrepo_grouping_k2_set?.npz",
    "A_aggregation/matflrepo_soft_th*_set?.npz",
    "A_aggregation/matflrepo_naive_avg_set0.npz",
    "A_aggregation/matflrepo_single_task_set0.npz",
    "A_aggregation/cagrad_solver.*",
    "B_losses/*",
    "C_meters/get_output_set?.npz",
    "C_meters/*_set0.npz",
    "C_meters/scores_*.json",
    "D_edges/*",
    "E_models/*",
    "F_transforms/*",
)
# Arrays that no test reads, by the file's name.
UNREAD = {
    "*repo_*": ("*buf", "*_ca_fun", "*_ca_nit", "*_ca_status"),
    "cagrad_solver.npz": ("*_ref", "*_rescale2", "*_norm_*", "*_fun_opt", "*_fwgap_opt", "*_rescale1_opt"),
}


def main() -> None:
    """Copy what is chosen, and list it with its checksums in index.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("full", type=Path, help="folder with the full set (A_aggregation, B_losses ...)")
    full = parser.parse_args().full
    found = {pattern: sorted(full.glob(pattern)) for pattern in CHOSEN}
    if missing := [pattern for pattern in CHOSEN if not found[pattern]]:
        raise SystemExit(f"{full} is not the full set: it lacks {len(missing)} of what is chosen, first {missing[0]}")
    for folder in sorted({pattern.partition("/")[0] for pattern in CHOSEN}):
        shutil.rmtree(HERE / folder, ignore_errors=True)
        (HERE / folder).mkdir()
    for pattern in CHOSEN:
        for source in found[pattern]:
            copy(source, HERE / source.relative_to(full))
    files = sorted(HERE.glob("[A-Z]_*/*"))
    index = {path.relative_to(HERE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    (HERE / "index.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def copy(source: Path, target: Path) -> None:
    """The file as it is or, where it has arrays that no test reads, the others compressed again."""
    unread = [array for name, arrays in UNREAD.items() if fnmatch(source.name, name) for array in arrays]
    if unread and source.suffix == ".npz":
        with np.load(source) as data:
            kept = {key: data[key] for key in data.files if not any(fnmatch(key, pattern) for pattern in unread)}
            if len(kept) < len(data.files):
                np.savez_compressed(target, **kept)
                return
    shutil.copyfile(source, target)


if __name__ == "__main__":
    main()
