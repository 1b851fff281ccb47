"""The generators of command lines, by kind."""

from asked_files import presets, ranges, run_files
from cases import grids, names, outputs, overrides, scenarios, stored_configs
from damaged_runs import damaged_looks, damaged_reports, damaged_resumes, small_files
from evaluate_inputs import evaluations
from outside_predictions import outside_predictions

COMMANDS = {
    "override": overrides(),
    "scenario": scenarios(),
    "grid": grids(),
    "name": names(),
    "stored": stored_configs(),
    "output": outputs(),
    "file": small_files(),
    "report": damaged_reports(),
    "resume": damaged_resumes(),
    "evaluate": evaluations(),
    "preset": presets(),
    "run file": run_files(),
    "range": ranges(),
    "runs": damaged_looks(),
    "external": outside_predictions(),
}
