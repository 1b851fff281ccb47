"""The command line as a user meets it: what it prints where, its exit codes, and one line for every mistake."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fmtlbench.cli import FORMER, VERBS, main

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "torchvision", "timm", "scipy", "skimage", "numba", "matplotlib", "pandas", "rich")


@pytest.fixture
def cli(capsys):
    """Run a command line in this process: (exit code, stdout, stderr)."""

    def call(*argv):
        capsys.readouterr()
        try:
            code = main([str(word) for word in argv])
        except SystemExit as error:  # argparse: --help, --version and its own complaints
            code = error.code or 0
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def tiny(cli, scenario_file, tiny_flags, tmp_path):
    """`fmtlbench run` on the two-client federation, one round."""

    def call(*argv, algo="fedavg", out=tmp_path / "runs"):
        return cli(
            "run", "--algo", algo, "--scenario", scenario_file, "--rounds", 1, "--out", out, "--device", "cpu",
            *tiny_flags, *argv,
        )  # fmt: skip

    return call


def refused(result, code, *parts):
    """Exit code, nothing on stdout, and the one line on stderr holding `parts`."""
    assert result[0] == code, result
    assert result[1] == ""
    assert result[2].startswith("fmtlbench: ") and result[2].count("\n") == 1, result[2]
    for part in parts:
        assert part in result[2]


# -- looking around --------------------------------------------------------------------------------------------------


def test_python_dash_m_and_the_script_are_the_same(tmp_path):
    out = subprocess.run([sys.executable, "-m", "fmtlbench", "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert (out.returncode, out.stderr) == (0, "")
    name, version = out.stdout.split()
    assert name == "fmtlbench" and version[0].isdigit()


def test_list_is_complete_and_machine_readable(cli):
    code, out, err = cli("list", "--json")
    assert (code, err) == (0, "")
    listing = json.loads(out)
    kinds = ["algorithms", "scenarios", "presets", "architectures", "backbones", "metrics", "datasets"]
    kinds += ["tasks", "partitions", "weightings", "listeners"]
    assert list(listing) == kinds
    names = {kind: {record["name"] for record in records} for kind, records in listing.items()}
    assert names["algorithms"] >= {"local", "fedavg", "fedhca2"} and names["scenarios"] >= {"st_mt_1", "st_mt_2"}
    assert names["presets"] >= {"nano", "paper"} and names["datasets"] >= {"synth-nyud", "synth-pascal"}
    for kind, records in listing.items():
        assert json.loads(cli("list", kind, "--json")[1]) == records
        lines = cli("list", kind)[1].splitlines()
        assert lines[0] == f"# {kind}" and [line.split("\t")[0] for line in lines[2:]] == [r["name"] for r in records]


def test_list_with_a_pattern(cli):
    names = lambda *words: [record["name"] for record in json.loads(cli("list", *words, "--json")[1])]
    assert names("backbones", "[rs]*_nano") == ["swin_nano", "resnet_nano"]
    assert "timm/convnext_atto" in names("backbones", "timm/convnext*") and "timm/NAME" not in names(
        "backbones", "timm/*"
    )
    assert names("algorithms", "fedavg") == ["fedavg"]
    assert cli("list", "backbones", "timm/resnet5?")[1].splitlines()[2].startswith("timm/resnet50\t")


def test_show_scenario(cli, scenario_file):
    code, out, _ = cli("show", "scenario", "st_mt_1", "--json")
    record = json.loads(out)
    assert code == 0 and len(record["parties"]) == 6
    assert {p["client"]: p["share"] for p in record["parties"]}["pascal-sal"] == "1/5"
    code, out, _ = cli("show", "scenario", scenario_file)
    assert code == 0 and "nyud-multi\tnyud\tdepth, edge\tall\t600" in out and "judged on: global, personal" in out


def test_show_algorithm(cli):
    code, out, _ = cli("show", "algorithm", "fedhca2")
    assert code == 0 and "arXiv:2311.13250" in out
    assert "algo.c\t0.4\tfloat\t" in out and "algo.encoder\thca\thca | none" in out
    options = {o["option"]: o for o in json.loads(cli("show", "algorithm", "fedhca2", "--json")[1])["options"]}
    assert options["algo.c"]["default"] == 0.4


def test_presets_options_are_shown_with_the_method_and_with_the_preset(cli):
    assert "--preset fmtl-bench starts from algo.mu=0.001" in cli("show", "algorithm", "fedprox")[1]
    presets = json.loads(cli("show", "algorithm", "fedprox", "--json")[1])["presets"]
    assert presets == {"fmtl-bench": {"mu": 0.001}, "mat-fl": {"shared": "encoder"}}
    assert "--preset" not in cli("show", "algorithm", "local")[1]
    listed = {each["name"]: each["options"] for each in json.loads(cli("list", "presets", "--json")[1])}
    assert "fedprox: mu=0.001" in listed["fmtl-bench"] and listed["paper"] == ""


def test_options_are_shown_as_they_are_typed(cli, tmp_path):
    file = tmp_path / "mine.py"
    params = """@dataclass(frozen=True)
    class Params:
        must: int
        k: int | None = None
        on: bool = True"""
    file.write_text("from dataclasses import dataclass\n" + METHOD.replace("pass", params))
    out = cli("show", "algorithm", file)[1]
    assert "algo.must\trequired\tint" in out and "algo.k\tnull\tint | null" in out and "algo.on\ttrue\tbool" in out
    assert json.loads(cli("show", "algorithm", file, "--json")[1])["options"][1]["default"] is None


METHOD = """\
from fmtlbench.algorithms import ALGORITHMS, Algorithm

@ALGORITHMS.register("halfway")
class Halfway(Algorithm):
    title, paper = "Halfway", "none"
    pass
"""


@pytest.mark.parametrize("words", FORMER)
def test_a_former_verb_says_what_to_type_instead(cli, words):
    """What it names can be typed, with the rest of what was typed: a verb, or a target of the Makefile."""
    verb = words.split()[0]
    assert verb not in VERBS
    for more in ([], ["--help"], ["runs", "-o", "my file"]):
        refused(cli(*words.split(), *more), 2, f"no verb '{verb}' any more: ")
    commands = re.findall("`(fmtlbench|make) ([a-z_-]+)[^`]*`", FORMER[words])
    targets = re.findall("^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert commands and all(name in (targets if tool == "make" else VERBS) for tool, name in commands)
    if "{}" in FORMER[words]:
        (typed,) = re.findall("`fmtlbench (.*)`", cli(*words.split(), "--help")[2])
        assert cli(*shlex.split(typed))[0] == 0
        assert " runs -o 'my file'`" in cli(*words.split(), "runs", "-o", "my file")[2]


def test_a_reader_that_stops_early_is_no_error(tmp_path):
    code = "import os, subprocess, sys; r, w = os.pipe(); os.close(r)\n"
    code += "done = subprocess.run([sys.executable, '-m', 'fmtlbench', 'list'], stdout=w, stderr=subprocess.PIPE)\n"
    code += "print(done.returncode, done.stderr.decode())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert out.stdout.split() == ["0"]


# -- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_and_its_formats(tiny, tiny_run, tmp_path):
    code, out, err = tiny()
    assert code == 0
    header, *rows = [line.split("\t") for line in out.splitlines()]
    assert header == ["client", "dataset", "split", "task", "metric", "better", "value", "trivial"]
    assert len(rows) == 6 and all(len(row) == 8 and float(row[6]) >= 0 for row in rows)
    events = [json.loads(line) for line in err.splitlines()]
    assert [event["event"] for event in events] == ["begin", "round", "bill", "note"]

    # the same again is shown, not repeated, and says so
    code, again, err = tiny()
    assert (code, again) == (0, out)
    (event,) = [json.loads(line) for line in err.splitlines()]
    assert event["event"] == "note" and "finished before" in event["message"]

    code, text, _ = tiny("--format", "json")
    record = json.loads(text)
    assert record["reused"] and record["rounds"] == 1 and str(tmp_path / "runs") in record["folder"]
    scores = [r for r in record["scores"] if r["primary"]]
    digits = [4 if r["unit"] == "m" else 2 for r in scores]
    assert [row[6] for row in rows] == [f"{r['value']:.{d}f}" for r, d in zip(scores, digits)]

    code, table, _ = tiny("--format", "table")
    assert code == 0 and "FedAvg on duo" in table and "RMSE ↓" in table and "finished before" in table
    assert all(row[6] in table for row in rows)

    # the Python API gives the same object
    result = tiny_run("fedavg", rounds=1)
    assert result.reused and result.summary["scores"] == record["scores"]

    code, fresh, err = tiny("--fresh")
    assert (code, fresh) == (0, out) and [json.loads(line)["event"] for line in err.splitlines()] == [
        "begin",
        "round",
        "bill",
        "note",
    ]


USER_METHOD = '''\
"""Encoders go half of the way to their mean."""

from dataclasses import dataclass

from fmtlbench.algorithms import ALGORITHMS, Algorithm


@ALGORITHMS.register("halfway")
class Halfway(Algorithm):
    title, paper = "Halfway", "nobody, 2024"

    @dataclass(frozen=True)
    class Params:
        share: float = 0.5

    def shared(self, index):
        return ("encoder",)

    def aggregate(self, rnd):
        rows = rnd.encoder.after
        return {"encoder": rows + self.params.share * (rows.mean(0) - rows)}
'''


def test_a_users_own_method_from_another_folder(tiny, cli, tmp_path, monkeypatch):
    folder = tmp_path / "my ideas [1]"
    folder.mkdir()
    (folder / "half.py").write_text(USER_METHOD)
    monkeypatch.chdir(folder)
    code, out, err = tiny("--set", "algo.share=0.25", "--format", "table", algo="./half.py", out="my [/runs]")
    assert code == 0, err
    assert "Halfway on duo" in out and "done: my [/runs]/duo/halfway/" in out.replace("\n", "")
    (summary,) = folder.glob("my [[]/runs]/duo/halfway/*/summary.json")
    assert json.loads(summary.read_text())["options"] == {"share": 0.25}
    assert json.loads(summary.read_text())["bytes_up"] > 0
    code, out, _ = cli("show", "algorithm", "half.py")
    assert code == 0 and "go half of the way" in out and "algo.share\t0.5\tfloat" in out
    refused(tiny("--set", "algo.shar=1", algo="half.py"), 2, "'share'")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x = 1\n", ["mine.py registers 0 algorithms, expected exactly one"]),
        (METHOD + METHOD.replace("alfway", "alfback"), ["mine.py registers 2 algorithms"]),
        ("import os\n\ndef broken(:\n", ["mine.py:3: invalid syntax"]),
        ("import os\nos.nothing()\n", ["mine.py:2: AttributeError"]),
        (METHOD.replace('"halfway"', '"fedavg"'), ["'fedavg' is registered twice"]),
        (METHOD.replace('title, paper = "Halfway", "none"', ""), ["Halfway has no title"]),
    ],
)
def test_a_users_broken_method_is_one_line(tiny, tmp_path, text, parts):
    file = tmp_path / "mine.py"
    file.write_text(text)
    refused(tiny(algo=file), 2, *parts)


def test_a_users_broken_scenario_is_one_line(cli, tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text("description: x\npaper: y\nversion: 1\nclients:\n  - {dataset: nyud, tasks: [dept]}\n")
    refused(cli("run", "--algo", "fedavg", "--scenario", file), 2, f"{file}:5: ", "'depth'")


def test_a_machine_without_what_was_asked_for(tiny, cli, tmp_path):
    import torch

    if not torch.cuda.is_available():
        refused(tiny("--device", "cuda"), 1, "--device cuda", "--device cpu")
        refused(tiny("--device", "cuda:300"), 1, "--device cuda:300")
    paper = ("run", "--algo", "fedavg", "--scenario", "st_mt_1", "--preset", "paper", "--out", tmp_path / "runs")
    scratch = ("--set", "model.pretrained=false")  # weights are asked for first, and there may be no network
    refused(cli(*paper, *scratch, "--device", "cpu"), 1, "no PASCALContext/ found", "--preset nano")


def test_a_file_where_the_output_folder_should_be(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    refused(tiny(out=tmp_path / "file"), 2, "a file, expected a folder", str(tmp_path / "file"))


def test_ctrl_c_is_one_line_and_the_run_goes_on(cli, scenario_file, tiny_flags, tmp_path):
    argv = [
        "run", "--algo", "local", "--scenario", scenario_file, "--device", "cpu", "--rounds", "12",
        "--out", str(tmp_path / "runs"), *tiny_flags,
    ]  # fmt: skip
    # the test may itself run in a background job, whose children ignore SIGINT unless told otherwise
    process = subprocess.Popen(
        [sys.executable, "-m", "fmtlbench", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    for line in process.stderr:
        if json.loads(line).get("round") == 2:
            break
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, ""), rest
    told = rest.splitlines()
    assert told[-1].startswith("fmtlbench: interrupted; the same command goes on")
    assert all(json.loads(line)["event"] == "round" for line in told[:-1])
    code, out, err = cli(*argv)
    assert code == 0 and len(out.splitlines()) == 7
    events = [json.loads(line) for line in err.splitlines()]
    assert "going on after round" in events[0]["message"] and events[1]["done"] >= 2


# -- data show -------------------------------------------------------------------------------------------------------


SHEET = ("data", "show", "synth-nyud", "--count", 1, "--size", 32, 32, "-o")


def test_data_show_writes_a_picture(cli, tmp_path):
    file = tmp_path / "with space.png"
    assert cli(*SHEET, file) == (0, f"{file}\n", "")
    assert file.read_bytes().startswith(b"\x89PNG")
    sheets = [cli(*SHEET, tmp_path / f"{split}.png", "--split", split)[0] for split in ("train", "pretrain")]
    assert sheets == [0, 0] and (tmp_path / "train.png").read_bytes() != (tmp_path / "pretrain.png").read_bytes()
