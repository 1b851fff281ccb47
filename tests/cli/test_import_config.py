"""`fmtlbench import-config`: public configs become scenarios that load, with a command that resolves."""

from __future__ import annotations

import shlex

import pytest
import yaml

from fmtlbench.cli import build_parser, main
from fmtlbench.cli._request import request_from
from fmtlbench.config.resolve import resolve
from fmtlbench.scenarios import load_scenario

TRAINING = {
    "local_epochs": 4, "tr_batch": 4, "val_batch": 8, "nworkers": 0, "lr": 0.0001, "weight_decay": 0.0001,
    "warmup_epochs": 5,
}  # fmt: skip
NYUD = {"semseg": 1, "normals": 1, "edge": 1, "depth": 1}
PASCAL = {"semseg": 2, "human_parts": 2, "normals": 2, "edge": 2, "sal": 2}
OPTIMISER = {"lr": 0.01, "weight_decay": 0.0001, "momentum": 0.9}


def entry(name, tasks, **more):
    return {"dataname": name, **TRAINING, "task_dict": tasks, **more}


FEDHCA2 = {
    "ST_Datasets": [entry("pascalcontext", PASCAL, local_epochs=1, optimizer="adamw")],
    "MT_Datasets": [entry("nyud", NYUD, client_num=2, optimizer="adamw")],
    "Model": {"backbone_type": "swin-t", "backbone_pretrained": True},
    "Hyperweight": OPTIMISER,
}
BENCH = {
    "MT_Datasets": [entry("nyud", NYUD, client_num=4, noniid=True)],
    "Model": {"n_class": 40, "n_fc": 8, "dim_latent": 120, "backbone": "resnet18"},
    "Hypernetwork": {"enc_opt": OPTIMISER, "dec_opt": OPTIMISER},
}
HYBRID = {**BENCH, "ST_Datasets": [entry("nyud", NYUD, noniid=False)]}
HYBRID["MT_Datasets"] = [entry("nyud", NYUD, client_num=4, noniid=False)]


@pytest.fixture
def bring(tmp_path, capsys):
    """Import a config: (exit code, report by first column, stderr, path of the scenario)."""

    def call(config, *argv, name="public.yml"):
        source, target = tmp_path / name, tmp_path / "mine.yml"
        if isinstance(config, str):
            source.write_text(config)
        elif config is not None:
            source.write_text(yaml.safe_dump(config, sort_keys=False))
        code = main(["import-config", str(source), "-o", str(target), *map(str, argv)])
        out, err = capsys.readouterr()
        report = {}
        for line in out.splitlines():
            kind, text = line.split("\t")
            report.setdefault(kind, []).append(text)
        return code, report, err, target

    return call


def ran(report):
    """The config that the reported command stands for."""
    (command,) = report["command"]
    words = shlex.split(command)
    assert words[0] == "fmtlbench"
    return request_from(build_parser().parse_args(words[1:])).config()


def test_a_fedhca2_config(bring):
    code, report, err, target = bring(FEDHCA2)
    assert (code, err, report["scenario"]) == (0, "", [str(target)])
    assert report["same clients"] == ["st_mt_1_2c"] and "not mapped" not in report
    config = ran(report)
    assert (config.algorithm.name, config.preset, config.seed) == ("fedhca2", "paper", 0)
    assert config == resolve("fedhca2", str(target), "paper")  # the preset says it all already
    assert target.read_text().startswith(f"# Run: {report['command'][0]}\n")


def test_an_fmtl_bench_config(bring):
    code, report, _, target = bring(BENCH)
    assert code == 0 and report["same clients"] == ["niid4_ubsdmt"]
    scenario = load_scenario(str(target))
    assert scenario.partition.kind == "linear" and scenario.evaluation == ("global", "personal")
    assert len(report["not mapped"]) == 3 and all("public.yml:" in line for line in report["not mapped"])
    assert any("Model.dim_latent" in line for line in report["not mapped"])
    config = ran(report)
    assert (config.preset, config.model.backbone, config.federation.exchange) == ("fmtl-bench", "resnet18", "decoders")
    assert scenario.exchange == "models"  # but for the method that the file implies, which never sends whole models
    report = bring(BENCH, "--algo", "fedavg", "--force")[1]
    assert ran(report).federation.exchange == "models" and "exchange" not in report["command"][0]


@pytest.mark.parametrize("mu", [0.01, 0.001])
def test_a_constant_that_is_the_methods_default_but_not_the_presets_is_kept(bring, mu):
    code, report, _, _ = bring({**BENCH, "encoder_agg": "fedprox", "decoder_agg": "fedprox", "mu": mu})
    assert code == 0 and ran(report).algorithm.options["mu"] == mu
    assert ("algo.mu" in report["command"][0]) is (mu == 0.01)  # the preset's needs no flag


def test_the_public_code_counts_the_warm_up_in_epochs(bring):
    train = ran(bring(BENCH)[1]).train
    assert (train.warmup_epochs, train.warmup_rounds) == (5, None)


def test_both_lists_with_one_dataset_are_two_pools(bring):
    code, report, _, target = bring(HYBRID)
    assert code == 0 and report["same clients"] == ["niid3_sdht"]
    assert [c.pool for c in load_scenario(str(target)).parties()] == ["single"] * 4 + ["multi"] * 4
    assert any("in both lists" in line for line in report["remark"])


def test_every_value_arrives(bring):
    nyud = entry(
        "nyud", NYUD, client_num=3, local_epochs=2, tr_batch=3, val_batch=5, nworkers=6, lr=1e-3, weight_decay=0.5,
        warmup_epochs=7, optimizer="sgd",
    )  # fmt: skip
    flags = {"max_rounds": 12, "eval_freq": 6, "seed": 5, "fp16": True, "ca_c": 0.2, "enc_alpha_init": 0.3,
             "dec_beta_init": 0.6, "encoder_agg": "conflict_averse", "decoder_agg": "cross_attention"}  # fmt: skip
    model = {"backbone_type": "swin-b", "backbone_pretrained": False}
    hyper = {"lr": 0.02, "weight_decay": 0.001, "momentum": 0.8}
    code, report, _, _ = bring({"MT_Datasets": [nyud], "Model": model, "Hyperweight": hyper, **flags}, "--gpus", 4)
    assert code == 0 and "not mapped" not in report
    config = ran(report)
    assert len(config.scenario.parties()) == 3 and config.seed == 5
    train = config.train
    assert (train.local_epochs["nyud"], train.batch_size, train.lr, train.weight_decay) == (2, 12, 1e-3, 0.5)
    assert (train.warmup_epochs, train.optimizer, train.amp) == (7, "sgd", "fp16")
    assert (config.evaluation.batch_size, config.evaluation.every, config.data.workers) == (5, 6, 6)
    assert (config.federation.rounds, config.model.backbone, config.model.pretrained) == (12, "swin_base", False)
    options = {"c": 0.2, "alpha": 0.3, "beta": 0.6, "lr": 0.02, "momentum": 0.8, "weight_decay": 0.001}
    assert config.algorithm.options.items() >= options.items()


@pytest.mark.parametrize(
    ("flags", "algo", "options"),
    [
        ({}, "local", {}),
        ({"encoder_agg": "fedavg", "decoder_agg": "fedavg"}, "fedavg", {"shared": "all"}),
        ({"encoder_agg": "fedprox", "decoder_agg": "none", "mu": 0.5}, "fedprox", {"shared": "encoder", "mu": 0.5}),
        ({"encoder_agg": "fedamp", "decoder_agg": "fedamp", "lamda": 15, "sigma": 2}, "fedamp", {"lam": 15.0}),
        ({"encoder_agg": "manytask", "decoder_agg": "none"}, "matfl", {}),
        ({"encoder_agg": "none", "decoder_agg": "fedhca2"}, "fedhca2", {"encoder": "none", "decoder": "hca"}),
        ({"encoder_agg": "fedhca2", "decoder_agg": "none"}, "fedhca2", {"encoder": "hca", "decoder": "none"}),
    ],
)  # fmt: skip
def test_the_method(bring, flags, algo, options):
    code, report, _, _ = bring({"MT_Datasets": BENCH["MT_Datasets"], "Model": {"backbone": "resnet18"}, **flags})
    assert code == 0 and "not mapped" not in report
    method = ran(report).algorithm
    assert method.name == algo and method.options.items() >= options.items()


def test_the_method_may_be_chosen(bring):
    code, report, _, _ = bring(BENCH, "--algo", "fedrep", "--preset", "nano")
    assert code == 0 and any(line.endswith("options of fedhca2, not of fedrep") for line in report["not mapped"])
    assert ran(report).algorithm.name == "fedrep"
    code, _, err, _ = bring(BENCH, "--algo", "fedrap", "--force")
    assert code == 2 and "fedrep" in err


def test_the_network_of_fmtl_bench_is_its_scripts_choice(bring):
    _, report, _, _ = bring(BENCH)
    assert ran(report).model.architecture == "md"
    assert any("--set model.architecture=tc" in line for line in report["remark"])
    _, report, _, _ = bring({**BENCH, "Mode": "tc"}, "--force")
    model = ran(report).model
    assert (model.architecture, model.options) == ("tc", {"task_steps": "sequential"})
    assert not any("model.architecture=tc" in line for line in report["remark"])
    _, report, _, _ = bring({**BENCH, "Mode": "dtc"}, "--force")
    assert any("Mode: 'dtc' conditions the network otherwise" in line for line in report["not mapped"])


def test_a_refused_command_is_told_and_the_scenario_written(bring):
    code, report, _, target = bring(HYBRID, "--algo", "fedavg")
    assert code == 0 and len(load_scenario(str(target)).parties()) == 8
    assert any(line.startswith("The command will be refused: fedavg on public") for line in report["remark"])


def test_what_has_no_counterpart_is_listed_with_its_line(bring):
    config = {
        "MT_Datasets": [
            entry("nyud", NYUD, client_num=1, lr=0.0002, prefetch=3, train_transforms={"flip": True}),
            entry("pascalcontext", {"semseg": 1, "sal": 0}, client_num=1, optimizer="lamb", local_epochs=1),
        ],
        "Model": {"backbone_type": "vit-b", "head_type": "transpose"},
        "Hyperweigth": OPTIMISER,
        "exp": "one", "mu": 0.1,
    }  # fmt: skip
    _, report, _, target = bring(config, "--algo", "local")
    lines = target.parent.joinpath("public.yml").read_text().splitlines()
    found = {}
    for note in report["not mapped"]:
        place, key, why = note.split(": ", 2)
        assert key.split(".")[-1] in lines[int(place.removeprefix("public.yml:")) - 1]
        found[key] = why
    assert found["MT_Datasets.0.prefetch"].startswith("unknown key")
    assert found["Hyperweigth"] == "unknown key; did you mean 'Hyperweight' or 'Hypernetwork'?"
    assert "no backbone 'vit-b'" in found["Model.backbone_type"] and "lamb" in found["MT_Datasets.1.optimizer"]
    assert "train.lr is one value for all; 0.0002" in found["MT_Datasets.1.lr"]
    assert found["mu"] == "an option of fedprox, not of local" and "--out" in found["exp"]
    assert set(found) >= {"MT_Datasets.0.train_transforms", "Model.head_type"}
    assert [c.tasks for c in load_scenario(str(target)).parties()][1] == ("semseg",)
    assert all(f"# Not mapped: {note}" in target.read_text() for note in report["not mapped"])


def changed(**keys):
    return {"MT_Datasets": [{k: v for k, v in {**BENCH["MT_Datasets"][0], **keys}.items() if v is not None}]}


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        (changed(dataname="nyu"), [":2: MT_Datasets.0.dataname", "no dataset 'nyu'", "'nyud'"]),
        (changed(dataname="cityscapes"), ["no dataset 'cityscapes'", "nyud, pascalcontext"]),
        (changed(dataname=None), ["MT_Datasets.0: missing key 'dataname'"]),
        (changed(client_num=None), ["MT_Datasets.0: missing key 'client_num'"]),
        (changed(client_num="four"), ["MT_Datasets.0.client_num", "a whole number, got 'four'"]),
        (changed(client_num=0), ["MT_Datasets.0.client_num", "at least 1, got 0"]),
        (changed(client_num=10**6), ["at most 100000"]),
        (changed(client_num=400), ["public.yml, as a scenario, line", "400 nyud clients, but only 795 images"]),
        (changed(noniid="yes please"), ["MT_Datasets.0.noniid", "true or false"]),
        (changed(lr="fast"), ["MT_Datasets.0.lr", "a number, got 'fast'"]),
        (changed(lr=0), ["train.lr", "more than 0"]),
        (changed(task_dict=["depth"]), ["MT_Datasets.0.task_dict", "a mapping"]),
        (changed(task_dict=None), ["MT_Datasets.0: missing key 'task_dict'"]),
        (changed(task_dict={"deth": 1}), ["task_dict.deth", "nyud has no such task", "'depth'"]),
        (changed(task_dict={"depth": 0}), ["MT_Datasets.0.task_dict: no task has a client"]),
        (changed(task_dict={"depth": -1}), ["task_dict.depth", "at least 0"]),
        ({"MT_Datasets": BENCH["MT_Datasets"] * 2}, ["MT_Datasets.0.dataname", "listed twice in MT_Datasets"]),
        ({"MT_Datasets": "nyud"}, [":1: MT_Datasets: expected a list, got 'nyud'"]),
        ({"MT_Datasets": ["nyud"]}, [":2: MT_Datasets.0: expected a mapping, got 'nyud'"]),
        ({**BENCH, "Model": "resnet18"}, ["Model: expected a mapping"]),
        ({**HYBRID, "ST_Datasets": [entry("pascalcontext", PASCAL, noniid=True)]}, ["noniid: differs between"]),
        ({"Model": {}}, ["public.yml", "neither ST_Datasets nor MT_Datasets"]),
        ("just words", ["expected a mapping, got 'just words'"]),
        ("a: [1, 2", ["not valid YAML"]),
        ("a: 1\nMT_Datasets: !!python/object/apply:os.getcwd []\n", [":2:", "not valid YAML", "python/object/apply"]),
        ("\x00\x01", ["not valid YAML"]),
        (None, ["No such file"]),
    ],
)  # fmt: skip
def test_a_config_that_cannot_be_read_is_one_line(bring, config, parts):
    code, report, err, target = bring(config)
    assert (code, report) == (2, {}) and err.startswith("fmtlbench: ") and err.count("\n") == 1, err
    for part in parts:
        assert part in err
    assert not target.exists()


def test_files_are_not_overwritten_unasked(bring, tmp_path, capsys):
    target = tmp_path / "mine.yml"
    target.write_text("precious")
    code, _, err, _ = bring(BENCH)
    assert code == 2 and "--force" in err and target.read_text() == "precious"
    assert bring("broken: [", "--force")[0] == 2 and target.read_text() == "precious"
    assert bring(BENCH, "--force")[0] == 0 and load_scenario(str(target)).clients
    source = tmp_path / "public.yml"
    before = source.read_text()
    assert main(["import-config", str(source), "-o", str(source), "--force"]) == 2 and source.read_text() == before
    for bad in (tmp_path / "mine.txt", tmp_path / "nowhere" / "mine.yml"):
        assert main(["import-config", str(source), "-o", str(bad)]) == 2
    assert main(["import-config", str(source), "--gpus", "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 4
    assert sorted(f.name for f in tmp_path.iterdir()) == ["mine.yml", "public.yml"]


def test_without_a_target_the_scenario_is_printed(tmp_path, capsys):
    source = tmp_path / "public.yml"
    source.write_text(yaml.safe_dump({**BENCH, "odd\nkey: [": 1}))
    assert main(["import-config", str(source)]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "# Run: fmtlbench run --algo fedhca2 --scenario public.yml" in out and "odd key: [" in out
    copy = tmp_path / "copy.yml"
    copy.write_text(out)
    assert len(load_scenario(str(copy)).parties()) == 4
