"""One frozen config from preset, scenario, options and overrides; its hash; and what every wrong value is told."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import yaml

from fmtlbench.base.errors import RefusedError, UsageError
from fmtlbench.base.yamlfile import load_yaml
from fmtlbench.config.presets import read_preset
from fmtlbench.config.resolve import parse_overrides, resolve
from fmtlbench.config.run_config import RunConfig
from fmtlbench.engine.admit import admit


def configure(*assignments, algo="fedavg", scenario="st_mt_1", **given):
    return resolve(algo, scenario, overrides=parse_overrides(assignments), **given)


def complaint(*assignments, **given):
    with pytest.raises(UsageError) as caught:
        admit(configure(*assignments, **given))
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- layers ----------------------------------------------------------------------------------------------------------


def test_an_override_beats_the_preset_and_leaves_its_neighbours():
    plain, changed = configure(), configure("train.lr=0.5", "data.size.nyud=[32, 64]")
    assert (plain.train.lr, changed.train.lr) == (read_preset("nano")["train"]["lr"], 0.5)
    assert changed.train.batch_size == plain.train.batch_size == 16
    assert changed.data.size == {"pascal": (64, 64), "nyud": (32, 64)}
    assert changed.train.betas == (0.9, 0.95)  # the preset's, not the default 0.999


def test_an_override_reaches_into_the_scenario():
    changed = configure(
        "scenario.clients.0.count=3", "scenario.clients.5.tasks=[depth]", "scenario.evaluation=[personal]"
    )
    assert [c.id for c in changed.scenario.parties()][:3] == [f"pascal-semseg-{i}" for i in (1, 2, 3)]
    assert changed.scenario.parties()[-1].tasks == ("depth",)
    assert changed.scenario.evaluation == ("personal",)


def test_the_last_of_two_equal_overrides_counts_and_a_section_can_be_given_whole():
    assert configure("train.lr=1", "train.lr=2").train.lr == 2
    assert configure("train.local_epochs={pascal: 3, nyud: 4}", "train.local_epochs.nyud=5").train.local_epochs == {
        "pascal": 3,
        "nyud": 5,
    }


def test_algorithm_options_are_written_out():
    config = configure("algo.c=0.25", algo="fedhca2")
    assert config.algorithm.options["c"] == 0.25 and config.algorithm.options["alpha"] == 0.1
    assert config.algorithm.source is None


@pytest.fixture
def made_preset(tmp_path, monkeypatch):
    """nano and some options of methods, as the preset `made`."""
    import fmtlbench.config.presets

    files = fmtlbench.config.presets.preset_files()

    def make(algorithms):
        file = tmp_path / "made.yml"
        file.write_text(f"algorithms: {algorithms}\n{files['nano'].read_text(encoding='utf-8')}", encoding="utf-8")
        monkeypatch.setattr(fmtlbench.config.presets, "preset_files", lambda: {**files, "made": file})
        return file

    return make


def test_a_presets_options_stand_between_the_methods_own_and_overrides(made_preset):
    made_preset("{fedprox: {mu: 0.5, shared: encoder}, fedhca2: {c: 0.1}}")
    options = {"shared": "encoder", "weighting": "equal", "mu": 0.5}
    config = configure(algo="fedprox", preset="made")
    assert config.algorithm.options == options and "algorithms" not in config.dump()
    assert configure("algo.mu=2", algo="fedprox", preset="made").algorithm.options == {**options, "mu": 2.0}
    assert configure(algo="fedavg", preset="made").algorithm.options["shared"] == "all"
    typed = configure("algo.mu=0.5", "algo.shared=encoder", algo="fedprox")
    assert dataclasses.replace(typed, preset="made").hash() == config.hash()  # however it was said


@pytest.mark.parametrize(
    ("algorithms", "said"),
    [
        ("{fedproks: {mu: 1}}", ["made.yml:1: algorithms", "no algorithm 'fedproks'", "'fedprox'"]),
        ("{fedprox: {muu: 1}}", ["made.yml:1: algo.muu", "did you mean 'mu'"]),
        ("{fedprox: {mu: -1}}", ["made.yml:1: algo.mu", "expected at least 0"]),
        ("{fedprox: 0.1}", ["made.yml:1: algorithms.fedprox", "expected a mapping"]),
        ("[fedprox]", ["made.yml:1: algorithms", "expected a mapping"]),
    ],
)
def test_wrong_options_of_a_preset_name_its_line(made_preset, algorithms, said):
    made_preset(algorithms)
    message = complaint(algo="fedprox", preset="made")
    assert all(part in message for part in said), message


def test_only_the_chosen_methods_options_are_looked_at(made_preset):
    made_preset("{fedprox: {mew: 1}}")
    assert configure(algo="fedavg", preset="made").algorithm.name == "fedavg"


def test_a_presets_options_are_not_set_by_their_key():
    assert "algo.<option>" in complaint("algorithms.fedprox.mu=1")


def test_a_section_the_preset_leaves_out_takes_overrides():
    assert configure("train.loss_weights.edge=7").train.loss_weights == {"edge": 7.0}


def test_presets_differ_in_what_they_say():
    assert configure(preset="paper").model.backbone == "swin_tiny"
    assert configure(preset="nano").model.backbone == "resnet_nano"


def test_the_warm_up_is_counted_in_rounds_or_in_epochs_of_all_datasets_or_each():
    assert configure(algo="local", preset="fmtl-bench").train.warmup("nyud", 4) == 20
    assert configure(algo="local", preset="fmtl-bench").train.warmup("pascal", 1) == 5
    code = ("train.warmup_rounds=null", "train.warmup_epochs=5")  # what its code counts
    assert configure(*code, algo="local", preset="fmtl-bench").train.warmup("nyud", 4) == 5
    assert configure("train.warmup_rounds=3", "train.warmup_epochs=0").train.warmup("nyud", 2) == 6
    by_name = configure("train.warmup_epochs={nyud: 8, pascal: 2}").train
    assert (by_name.warmup("nyud", 4), by_name.warmup("pascal", 1)) == (8, 2)


def test_wrong_warm_ups():
    message = complaint("train.warmup_rounds=3")  # nano has two epochs
    assert "--set train.warmup_rounds=3" in message and "train.warmup_epochs=0" in message
    assert "train.warmup_rounds=null" in complaint("train.warmup_epochs=5", preset="fmtl-bench")
    assert "no entry for 'pascal'" in complaint("train.warmup_epochs={nyud: 8}")
    assert "no dataset 'nyd'" in complaint("train.warmup_epochs={nyd: 8, nyud: 1, pascal: 1}")
    assert "expected a whole number" in complaint("train.warmup_epochs=[1, 2]")
    assert "expected a whole number" in complaint("train.warmup_epochs={nyud: 0.5, pascal: 1}")
    assert "expected at least 0" in complaint("train.warmup_epochs={nyud: -1, pascal: 1}")


REAL = ("data.source=real", "data.train_samples=null", "data.test_samples=null", "model.init=torch")


def test_amounts_of_the_random_transforms_by_dataset():
    train = configure("train.scales={nyud: [1, 1.2, 1.5]}", "train.rotate_degrees={pascal: 20}").train
    assert (train.amounts("nyud").scales, train.amounts("nyud").degrees) == ((1.0, 1.2, 1.5), 0)
    assert (train.amounts("pascal").scales, train.amounts("pascal").degrees) == ((0.5, 2.0), 20)
    assert configure(preset="mat-fl").train.amounts("pascal").degrees == 20
    assert configure(preset="mat-fl").train.amounts("nyud").degrees == 0  # its code does not turn rooms


@pytest.mark.parametrize(
    ("assignments", "said"),
    [
        (("data.resize=fixed",), ["data.resize", "embedded"]),
        (("train.augment=[rotate]",), ["train.augment", "'rotate' is for real images"]),
        ((*REAL, "train.augment=[rotate]"), ["train.rotate_degrees", "no entry for 'nyud'"]),
        ((*REAL, "train.augment=[rotate]", "train.rotate_degrees={nyud: 5}"), ["no entry for 'pascal'"]),
        (("train.rotate_degrees={pasca: 5}",), ["train.rotate_degrees.pasca", "'pascal'"]),
        (("train.rotate_degrees={pascal: 181}",), ["train.rotate_degrees.pascal", "expected at most 180"]),
        (("train.scales={pasca: [1, 2]}",), ["train.scales.pasca", "'pascal'"]),
        (("train.scales={pascal: [2, 1]}",), ["train.scales.pascal", "the lowest and the highest", "[2.0, 1.0]"]),
        (("train.scales={pascal: []}",), ["train.scales.pascal", "got []"]),
        (("train.scales={pascal: [0, 1]}",), ["train.scales.pascal.0", "expected more than 0"]),
        ((*REAL, "data.resize=fixed", "train.augment=[crop]"), ["train.augment", "crop", "data.resize=fixed"]),
        (("data.resize=fixd",), ["data.resize", "expected one of none, fixed"]),
    ],
)
def test_transforms_that_make_no_sense(assignments, said):
    message = complaint(*assignments)
    assert all(part in message for part in said), message


def test_frozen():
    config = configure()
    for part, name in ((config, "seed"), (config.train, "lr"), (config.scenario, "version")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, name, 1)


def test_the_callers_values_are_not_changed():
    sizes = {"pascal": [64, 64], "nyud": [64, 64]}
    resolve("fedavg", "st_mt_1", overrides={"data.size": sizes, "data.size.nyud": [32, 32]})
    assert sizes["nyud"] == [64, 64]


def test_numpy_numbers_are_numbers():
    given = {"train.lr": np.float64(0.5), "federation.rounds": np.int64(3), "train.betas": (0.5, np.float32(0.5))}
    config = resolve("fedavg", "st_mt_1", seed=np.int64(4), overrides=given)
    assert (config.train.lr, config.federation.rounds, config.seed) == (0.5, 3, 4)
    assert config.hash() == configure("train.lr=0.5", "federation.rounds=3", "train.betas=[0.5, 0.5]", seed=4).hash()
    assert yaml.safe_load(config.dump())["seed"] == 4


# -- hash ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["train.lr=1e-3"], ["train.lr=0.001"]),
        (["train.lr=1"], ["train.lr=1.0"]),
        (["train.lr=2", "train.batch_size=4"], ["train.batch_size=4", "train.lr=2"]),
        (["data.size={pascal: [32, 32], nyud: [64, 64]}"], ["data.size={nyud: [64, 64], pascal: [32, 32]}"]),
        ([], [f"train.lr={read_preset('nano')['train']['lr']}"]),  # writing the preset's own value
        ([], ["algo.weighting=equal"]),  # writing the default
        ([], ["checkpoint_every=5"]),
        ([], ["scenario.description=other words", "scenario.paper=none"]),
        (["evaluation.metric_options.rmse.max_depth=10"], ["evaluation.metric_options={rmse: {max_depth: 10.0}}"]),
    ],
)
def test_equal_configs_have_equal_hashes(one, other):
    assert configure(*one).hash() == configure(*other).hash()


@pytest.mark.parametrize(
    "change",
    [
        "train.lr=1e-4", "train.batch_size=4", "train.threads=2", "train.amp=bf16", "train.augment=[]",
        "train.local_epochs.nyud=2", "data.test_samples.pascal=7", "data.personal_fraction=0.2", "model.drop_path=0.1",
        "federation.rounds=3", "federation.participation=0.5", "evaluation.every=1", "algo.weighting=samples",
        "scenario.version=2", "scenario.evaluation=[personal]", "scenario.clients.0.count=2",
        "evaluation.metric_options.miou.absent=zero", "evaluation.batch_size=3", "evaluation.when=both",
    ],
)  # fmt: skip
def test_what_decides_a_number_changes_the_hash(change):
    assert configure(change).hash() != configure().hash()


def test_algorithm_seed_and_device_change_the_hash():
    hashes = {configure(**given).hash() for given in ({}, {"algo": "local"}, {"seed": 1}, {"device": "cuda"})}
    assert len(hashes) == 4


def test_the_folder_is_named_by_the_config():
    config = configure(seed=3)
    assert config.folder().as_posix() == f"st_mt_1/fedavg/nano-synth-s3-{config.hash()[:8]}"


METHOD = """\
from fmtlbench.algorithms import ALGORITHMS, Algorithm

@ALGORITHMS.register("mine")
class Mine(Algorithm):
    title, paper = "Mine", "none"
"""


def test_a_users_method_is_identified_by_its_content(tmp_path):
    file, copy = tmp_path / "mine.py", tmp_path / "copy.py"
    file.write_text(METHOD)
    first = configure(algo=str(file))
    file.write_text(METHOD + "# edited\n")
    assert configure(algo=str(file)).hash() != first.hash()
    copy.write_text(METHOD.replace("mine", "theirs"))
    file.write_text(METHOD)
    assert configure(algo=str(file)).hash() == first.hash()
    assert first.algorithm.name == "mine" and len(first.algorithm.source) == 64


# -- round trip ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["train.clip_norm=0.1", "train.loss_weights={edge: 1e-7}", "train.min_lr=1e-30", "algo.shared=encoder"],
        ["scenario.description='1e-4'", "scenario.paper='null'", "scenario.clients.0.id='1e3'"],  # texts like numbers
        ["scenario.description='a: b # c — ² \"quoted\"'"],
    ],
)
def test_dump_reads_back_to_the_same_config(tmp_path, changes):
    config = configure(*changes)
    file = tmp_path / "config.yaml"
    file.write_text(config.dump(), encoding="utf-8")
    again = RunConfig.from_tree(load_yaml(file))
    assert again == config and again.hash() == config.hash()


# -- what clients exchange -------------------------------------------------------------------------------------------


def test_the_scenario_says_what_is_exchanged_unless_the_user_does():
    config = resolve("fedrep", "niid6_ubcdmt")
    assert config.federation.exchange == "models" and "exchange: models" in config.dump()
    assert configure().federation.exchange == "decoders"
    for key in ("federation.exchange", "scenario.exchange"):
        assert configure(f"{key}=models", algo="local").federation.exchange == "models"
    with pytest.raises(UsageError, match="expected one of decoders, models, got 'model'"):
        configure("federation.exchange=model")


def test_whole_models_of_unlike_clients_are_the_papers_null_with_any_preset():
    for preset in ("nano", "paper", "fmtl-bench"):
        with pytest.raises(RefusedError, match=r"with 2 and 4 tasks .* NULL.*algo.shared=encoder"):
            admit(resolve("fedavg", "niid6_ubcdmt", preset))
        admit(resolve("fedavg", "niid6_ubcdmt", preset, overrides={"federation.exchange": "decoders"}))
        admit(resolve("fedavg", "niid6_ubcdmt", preset, overrides={"algo.shared": "encoder"}))


@pytest.mark.parametrize("lost", [(), ("federation",)])
def test_configs_of_older_runs_read_as_what_they_were(tmp_path, lost):
    """Before scenarios said what is exchanged, and before anything but decoders could be."""
    config = resolve("fedavg", "st_mt_1")
    tree = yaml.safe_load(config.dump())
    for section in ("scenario", *lost):
        del tree[section]["exchange"]
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(tree))
    again = RunConfig.from_tree(load_yaml(file))
    assert again == config and again.hash() == config.hash()


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignment", "parts"),
    [
        ("train.lrr=1", ["--set train.lrr=1", "unknown key 'lrr'", "'lr'"]),
        ("trian.lr=1", ["--set trian.lr=1", "'train'"]),
        ("algo.sharde=all", ["--set algo.sharde=all", "'shared'"]),
        ("data.sizes.nyud=[1, 2]", ["--set data.sizes.nyud=[1, 2]", "data.sizes", "'size'"]),
        ("scenario.clients.0.task=[sal]", ["--set scenario.clients.0.task", "'tasks'"]),
        ("train.local_epochs.nyd=2", ["--set train.local_epochs.nyd=2", "no dataset 'nyd'", "'nyud'"]),
        ("train.loss_weights.semsg=2", ["--set", "no task 'semsg'", "'semseg'"]),
        ("train.optimizer=adamx", ["train.optimizer", "adamw, adam, sgd", "'adamx'"]),
        ("train.lr=fast", ["train.lr", "a finite number", "'fast'"]),
        ("train.lr=true", ["train.lr", "a finite number", "True"]),
        ("train.lr=null", ["train.lr", "a finite number", "None"]),
        ("train.lr=.nan", ["train.lr", "a finite number", "nan"]),
        ("train.lr=.inf", ["train.lr", "a finite number", "inf"]),
        ("train.lr=1e999", ["train.lr=1e999", "too large a number"]),
        ("train.lr=.inf", ["train.lr", "a finite number", "inf"]),
        ("train.lr=2024-01-01", ["train.lr", "a finite number"]),
        ("train.lr=0", ["train.lr", "more than 0"]),
        ("train.betas=[0.9]", ["train.betas", "2 values"]),
        ("train.betas=[0.9, 1]", ["train.betas.1", "less than 1"]),
        ("train.betas.0=-1", ["train.betas.0", "at least 0"]),
        ("train.batch_size=2.5", ["train.batch_size", "a whole number", "2.5"]),
        ("train.batch_size=0", ["train.batch_size", "at least 1"]),
        ("train.augment=flip", ["train.augment", "a list"]),
        ("train.augment=[crop]", ["--set train.augment", "real images"]),
        ("train=3", ["--set train=3", "a mapping"]),
        ("data.size.pascal=[64]", ["data.size.pascal", "2 values"]),
        ("data.size.pascal=[64, 0]", ["data.size.pascal.1", "at least 16"]),
        ("data.train_samples={pascal: 5}", ["--set data.train_samples", "no entry for 'nyud'"]),
        ("data.train_samples=null", ["--set data.train_samples=null", "no entry for"]),
        ("data.train_samples.nyud=0", ["data.train_samples.nyud", "at least 1"]),
        ("federation.participation=1.5", ["federation.participation", "at most 1"]),
        ("model.pretrained=maybe", ["model.pretrained", "true or false"]),
        ("checkpoint_every=0", ["checkpoint_every", "at least 1"]),
        ("scenario.clients.9.count=2", ["--set scenario.clients.9.count=2", "an index from 0 to 5", "'9'"]),
        ("scenario.clients.first.count=2", ["an index from 0 to 5", "'first'"]),
        ("scenario.clients.²=2", ["an index from 0 to 5"]),
        ("scenario.clients.0.tasks.0.x=1", ["scenario.clients.0.tasks.0 is a value, not a section"]),
        ("scenario.clients.0.tasks=[depth]", ["--set scenario.clients.0.tasks", "pascal has no task 'depth'"]),
        ("train.lr.x=1", ["--set train.lr.x=1", "train.lr is a value, not a section"]),
        ("train..lr=1", ["--set train..lr=1"]),
        ("seed=5", ["--set seed=5", "--seed"]),
        ("preset=paper", ["--set preset=paper", "--preset"]),
        ("device=cuda", ["--set device=cuda", "--device"]),
        ("algorithm.name=x", ["--set algorithm.name=x", "--algo"]),
        ("algo=5", ["--set algo=5", "a mapping"]),
        ("scenario=5", ["--set scenario=5", "--scenario"]),
        ("scenario.name=../x", ["--set scenario.name=../x", "named by its file"]),
    ],
)  # fmt: skip
def test_a_wrong_override_is_named(assignment, parts):
    message = complaint(assignment)
    for part in parts:
        assert part in message, message


OPTIONS = "evaluation.metric_options"


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("mioo.absent=zero", [f"{OPTIONS}.mioo", "no metric 'mioo'; did you mean 'miou'"]),
        ("miou.absnt=zero", [f"{OPTIONS}.miou.absnt", "did you mean 'absent'"]),
        ("miou.absent=zer", [f"{OPTIONS}.miou.absent", "'zer'", "'skip', 'zero'"]),
        ("miou.absent=null", [f"{OPTIONS}.miou.absent", "expected text"]),
        ("miou.num_classes=3", ["the dataset decides it; options of miou: absent"]),
        ("miou.ignore=0", ["255 is to be ignored in every label"]),
        ("miou=zero", [f"{OPTIONS}.miou", "expected a mapping"]),
        ("merr.zero=1", [f"{OPTIONS}.merr.zero", "expected text, got 1"]),
        ("rmse.max_depth=0", ["max_depth is 0.0", "more than 0"]),
        ("odsf.nms=maybe", ["expected true or false"]),
        ("odsf.jobs=2", ["does not change the score; options of odsf: max_dist, nms, gt, thresholds"]),
        ("odsf.gt=labelmap", ["boundary maps: seism or plain"]),
        ("maxf.scores=logit", ["'probability', 'sigmoid_of_probability'"]),
        ("maxf.thresholds=43", ["the nearest is 42"]),
        ("maxf.thresholds=0", ["the nearest is 1"]),
        ("edge_loss.positive_weight=0.8", ["would do nothing: edge is scored with odsf", "--set evaluation.metrics"]),
    ],
)  # fmt: skip
def test_a_wrong_option_of_a_metric_is_told_before_anything_is_trained(options, parts):
    for preset in ("nano", "paper"):
        message = complaint(f"{OPTIONS}.{options}", preset=preset)
        assert message.startswith(f"--set {OPTIONS}.{options}: ")
        for part in parts:
            assert part in message, message


def test_options_that_contradict_each_other_are_refused():
    message = complaint(f"{OPTIONS}.maxf.lowest=0.6", f"{OPTIONS}.maxf.highest=0.5")
    assert "no threshold k/20 lies from lowest=0.6 to highest=0.5" in message


def test_options_belong_to_the_metric_that_scores():
    other = "evaluation.metrics.edge=edge_loss"
    used = configure(other, f"{OPTIONS}.edge_loss.positive_weight=1")
    assert used.evaluation.metric_options == {"edge_loss": {"positive_weight": 1.0}}
    assert "edge is scored with edge_loss" in complaint(other, f"{OPTIONS}.odsf.nms=false")


def test_checking_options_imports_no_torch():
    code = """\
        import sys
        from fmtlbench.config.resolve import resolve
        for preset in ("nano", "paper", "fmtl-bench", "mat-fl"):
            resolve("local", "st_mt_1", preset, overrides={"evaluation.metric_options.maxf.thresholds": 9})
        assert not {"torch", "numba", "scipy", "skimage", "pandas"}.intersection(sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


@pytest.mark.parametrize("text", ["a", "=1", "  =1", "train.lr=", "train.lr", "train.lr=[1", "train.lr={a", "x=!y 1"])
def test_a_malformed_override_is_quoted(text):
    message = complaint(text)
    assert message.startswith(f"--set {text}: ")


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, None])
def test_a_seed_is_a_whole_number(seed):
    assert complaint(seed=seed).startswith(f"--seed {seed}: ")


def test_unknown_names_suggest():
    assert "'fedavg'" in complaint(algo="fedagv")
    assert "'st_mt_1'" in complaint(scenario="st_mt1")
    assert "'nano'" in complaint(preset="nanno")


@pytest.mark.parametrize(
    ("assignments", "start", "parts"),
    [
        (["model.backbone=swin_t"], "--set model.backbone=swin_t: model.backbone: ", ["no backbone", "'swin_tiny'"]),
        (["model.architecture=matfl", "model.backbone=swin_nano"], "", ["model.backbone", "dilated maps", "resnet18"]),
        (["data.size.nyud=[64, 40]"], "--set data.size.nyud=[64, 40]: ", ["data.size.nyud", "multiples of 32"]),
        (["data.train_samples.pascal=4"], "", ["st_mt_1.yml:5: clients: 5 pascal clients, but only 4 images"]),
        (["scenario.clients.5.count=900"], "--set scenario.clients.5.count=900: clients.5.count: ", ["only 600"]),
    ],
)
def test_what_cannot_be_built_is_told_before_any_data_are_made(assignments, start, parts):
    message = complaint(*assignments)
    assert message.startswith(start)
    for part in parts:
        assert part in message


def test_a_dilated_network_takes_multiples_of_eight():
    sizes = ["data.size.nyud=[64, 40]", "model.architecture=matfl", "model.backbone=resnet_nano"]
    assert configure(*sizes).data.size["nyud"] == (64, 40)


def test_training_images_of_a_domain():
    nano, paper = configure(), configure(preset="paper")
    assert [nano.data.train_images(d) for d in ("pascal", "nyud")] == [3000, 600]
    assert [paper.data.train_images(d) for d in ("pascal", "nyud")] == [4998, 795]
    fewer = configure("data.train_samples={pascal: 60}", preset="paper")
    assert [fewer.data.train_images(d) for d in ("pascal", "nyud")] == [60, 795]
    assert "data.train_samples" not in complaint("scenario.clients.0.count=5000", preset="paper")


def test_a_method_may_refuse():
    assert "federation.participation" in complaint("federation.participation=0.5", algo="local")
    configure("federation.participation=0.5", algo="fedavg")


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("class Mine:\n    title, paper = 'Mine', 'none'", "not a subclass"),
        ("class Mine(Algorithm):\n    paper = 'none'", "has no title"),
        ("class Mine(Algorithm):\n    title, paper = 'Mine', 'none'\n    class Params: pass", "not a dataclass"),
    ],
)
def test_an_incomplete_method_is_refused_before_training(tmp_path, body, what):
    file = tmp_path / "mine.py"
    file.write_text(METHOD.partition("class ")[0] + body + "\n")
    message = complaint(algo=str(file))
    assert "Mine" in message and what in message


@pytest.mark.parametrize("key", ["min_lr", "warmup_lr"])
def test_a_rate_that_others_begin_or_end_at_is_not_above_the_rate(key):
    with pytest.raises(UsageError, match=rf"train\.{key}: 1 is above train\.lr="):
        resolve("fedavg", "st_mt_1", overrides={f"train.{key}": 1.0})
