"""A run's request: one value, however it is asked for, and back to the words of a command line."""

from __future__ import annotations

import dataclasses
import pickle
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fmtlbench import cli
from fmtlbench.base.errors import UsageError
from fmtlbench.cli._request import request_from
from fmtlbench.config.keep import KEEP
from fmtlbench.config.request import EXECUTORS, REUSES, RunRequest

# argparse takes a lone "--" for the end of all flags, whatever flag it is the value of.
texts = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: text != "--")
names = st.text("abcxyz_0-", min_size=1).filter(lambda name: name != "--")
numbers = st.integers(1 - 2**63, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
# A plus parts a method from a weighting, and both are looked for at once; a word without one is taken as it is.
methods = texts.filter(lambda text: "+" not in text) | st.sampled_from(["fedavg+uw", "fedhca2+cagrad", "local+equal"])
keys = st.lists(names, min_size=1, max_size=3).map(".".join)
requests = st.builds(
    RunRequest,
    algo=methods,
    scenario=texts,
    preset=texts,
    seed=st.integers(),
    rounds=st.none() | st.integers(),
    device=texts,
    data_root=st.none() | texts,
    out=texts,
    fresh=st.booleans(),
    save_predictions=st.booleans(),
    keep=st.none() | st.sampled_from(KEEP),
    reuse=st.sampled_from(REUSES),
    energy=st.none() | st.booleans(),
    country=st.none() | texts,
    region=st.none() | texts,
    log=st.lists(names),
    executor=st.sampled_from(EXECUTORS),
    ray_address=st.none() | texts,
    overrides=st.dictionaries(keys, values, max_size=4),
)


@pytest.fixture(scope="module")
def parse():
    parser = cli.build_parser()
    return lambda argv: request_from(parser.parse_args(["run", *argv]))


def test_a_strategy_draws_every_field():
    """A field that is forgotten here would not be tried below."""
    drawn = {"algo", "scenario", "preset", "seed", "rounds", "device", "data_root", "out", "fresh", "save_predictions",
             "keep", "reuse", "energy", "country", "region", "log", "executor", "ray_address", "overrides"}  # fmt: skip
    of_files = {"stored", "lines"}  # what --config brings: tests/config/test_run_file.py
    assert {f.name for f in dataclasses.fields(RunRequest)} == drawn | of_files


@settings(max_examples=150, deadline=None)
@given(request=requests)
def test_the_words_of_a_command_line_ask_for_the_same(parse, request):
    assert parse(request.to_argv()) == request


@pytest.mark.parametrize(
    "value",
    ["", " a ", "-x", "--fresh", "null", "1e-4", "a: b", "#", "\t\n\r", "\x7f\x85\u2028\u2029\ufeff\x00", "“ü” 🌍", "=",
     1e-7, 1e16, -0.0, 2**62, [[], {}], {"": {"<<": None}}, ("a", (1,))],
)  # fmt: skip
def test_awkward_values_come_back(parse, value):
    request = RunRequest("fedavg", "st_mt_1", overrides={"scenario.description": value, "train.lr": 1e-3})
    again = parse(request.to_argv())
    assert again == request and repr(again) == repr(request)


def test_a_request_is_a_value():
    given_ = {"train.scales": {"nyud": (0.5, 2.0)}}
    request = RunRequest(Path("a.py"), Path("b.yml"), out=Path("runs"), overrides=given_)
    given_["train.lr"] = 1.0
    assert (request.algo, request.out, dict(request.overrides)) == (
        "a.py",
        "runs",
        {"train.scales": {"nyud": [0.5, 2]}},
    )
    assert pickle.loads(pickle.dumps(request)) == request
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.seed = 1


def test_who_is_told_is_one_list_and_decides_no_number():
    one, *others = (
        RunRequest("local", "st_mt_1", log=log) for log in ("a, b", ["a", "b"], ("a,b", "a"), [Path("a"), "b"])
    )
    assert all(other == one for other in others) and one.log == ("a", "b")
    assert RunRequest("local", "st_mt_1").log == RunRequest("local", "st_mt_1", log="").log == ()
    assert one.config().hash() == RunRequest("local", "st_mt_1").config().hash()


def test_keywords_are_fields_or_overrides():
    request = RunRequest.of("fedavg", "st_mt_1", seed=3, energy=False, **{"algo.shared": "encoder", "train.lr": 1e-3})
    assert (request.seed, request.energy) == (3, False)
    assert request.overrides == {"algo.shared": "encoder", "train.lr": 1e-3}
    assert request.config().train.lr == 1e-3 and request.config("cuda").device == "cuda"
    with pytest.raises(UsageError, match="no section 'overrides'"):
        RunRequest.of("fedavg", "st_mt_1", overrides={"train.lr": 1}).config()


def test_rounds_are_an_override():
    assert RunRequest("fedavg", "st_mt_1", rounds=7).config().federation.rounds == 7
    with pytest.raises(UsageError, match=r"--rounds 7: federation\.rounds is set too"):
        RunRequest("fedavg", "st_mt_1", rounds=7, overrides={"federation.rounds": 8}).config()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"executor": "rai"}, "--executor rai: no executor 'rai'; did you mean 'ray'"),
        ({"ray_address": "auto"}, "--ray-address auto: is for --executor ray"),
        ({"ray.workers": 2}, r"--set ray\.workers: is for --executor ray"),
        ({"executor": "ray", "ray.worker": 2}, r"--set ray\.worker=2: .*unknown key 'worker'; did you mean 'workers'"),
        ({"executor": "ray", "ray.workers": 0}, r"--set ray\.workers=0: ray\.workers"),
    ],
)
def test_an_executor_and_its_settings_go_together(asked, expected):
    with pytest.raises(UsageError, match=expected):
        RunRequest.of("fedavg", "st_mt_1", **asked).config()


def test_how_clients_are_spread_is_no_part_of_a_config():
    plain = RunRequest("fedavg", "st_mt_1").config()
    asked = {"ray.workers": 2, "ray.gpus_per_client": 0.5, "federation.park": "disk"}
    spread = RunRequest.of("fedavg", "st_mt_1", executor="ray", **asked)
    assert spread.config().hash() == plain.hash() and spread.ray_options().gpus_per_client == 0.5


def test_a_recorded_command_is_short_and_runnable(parse, tmp_path, monkeypatch):
    """Paths below the working directory are relative to it; what a shell would take apart is quoted."""
    monkeypatch.chdir(tmp_path)
    request = RunRequest(
        str(tmp_path / "my method.py"),
        "./duo.yml",
        out=tmp_path / "runs",
        data_root="/elsewhere/data",
        overrides={"data.files": {"robots": str(tmp_path / "robots.py")}, "train.lr": 1e-3},
    )
    words = shlex.split(request.command())
    assert words[:6] == ["fmtlbench", "run", "--algo", "my method.py", "--scenario", "duo.yml"]
    assert "'my method.py'" in request.command() and str(tmp_path) not in request.command()
    assert parse(words[2:]).anywhere() == request.anywhere()


def test_what_may_be_reused_is_one_of_two_words():
    with pytest.raises(UsageError, match="--reuse sam: no reuse 'sam'; did you mean 'same-code'"):
        RunRequest("local", "st_mt_1", reuse="sam")
