"""A method's mistakes are one line that names method, hook, client and round; a file may import what lies beside it."""

from __future__ import annotations

import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from kit import as_flags, make_federation

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.cli import main
from fmtlbench.config.resolve import resolve
from fmtlbench.engine.admit import admit
from fmtlbench.exchange.hooks import MethodError

GOOD = """\
import sys
from dataclasses import make_dataclass

import torch

from fmtlbench.algorithms import ALGORITHMS, Algorithm, Evaluation


@ALGORITHMS.register("mine")
class Mine(Algorithm):
    title, paper = "Mine", "none"
    {attributes}

    def shared(self, index):
        return ("encoder",)

    def aggregate(self, rnd):
        return {{"encoder": rnd.encoder.after.clone()}}

    def local_objective(self, local):
        return 0 * local.squared_norm("encoder")

    {hook}
"""


# Two alike clients, as small as can be: most of the time is building their networks.
TWINS = """\
description: two alike clients
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth], count: 2}
"""
TINY = {
    "model.backbone": "swin_nano", "model.pretrained": False,
    "data.train_samples.nyud": 4, "data.test_samples.nyud": 2, "data.size.nyud": [32, 32], "train.batch_size": 2,
    "train.local_epochs.nyud": 2,
}  # fmt: skip


@pytest.fixture
def mine(tmp_path):
    """Write a method file whose `hook` returns an expression, or does a statement."""

    def write(hook="pass", attributes="pass"):
        file = tmp_path / "mine.py"
        file.write_text(GOOD.format(hook=hook, attributes=attributes))
        return str(file)

    return write


@pytest.fixture
def twins(tmp_path):
    file = tmp_path / "twins.yml"
    file.write_text(TWINS)
    return str(file)


def one_round(algo, scenario, **overrides):
    federation = make_federation(algo, scenario, **{**TINY, "federation.rounds": 2, **overrides})
    federation.round(0)
    with tempfile.TemporaryDirectory() as folder:
        federation.save(Path(folder))
    return federation


def nan_for_second(values):
    return f"v = {values}.clone(); v[1, 3] = float('nan'); return {{'encoder': v}}"


ANSWERS = [
    ("shared(self, index)", "return 'encoder'", "mine.shared returned 'encoder', expected kinds"),
    ("shared(self, index)", "return ('head',)", "mine.shared returned ('head',)"),
    ("shared(self, index)", "return ('encoder', 'encoder')", "mine.shared returned"),
    ("shared(self, index)", "return None", "mine.shared returned None"),
    ("shared(self, index)", "return (['encoder'],)", "mine.shared returned (['encoder'],)"),
    ("shared(self, index)", "sys.exit(3)", "mine.shared failed: sys.exit(3) is not for a hook"),
    ("aggregate(self, rnd)", "return None", "aggregate returned None, expected a dict of tensors by kind (round 1)"),
    ("aggregate(self, rnd)", "return {'decoder': 1}", "returned 'decoder', but only encoder travelled in this round"),
    ("aggregate(self, rnd)", "return {7: 1}", "returned 7, but only encoder travelled"),
    ("aggregate(self, rnd)", "return {'encoder': [1]}", "returned a list for 'encoder', expected a tensor of shape"),
    ("aggregate(self, rnd)", "return {'encoder': rnd.encoder.after[:1]}", "returned (1, "),
    ("aggregate(self, rnd)", "return {'encoder': rnd.encoder.after.long()}", "torch.int64"),
    ("aggregate(self, rnd)", "return {'encoder': rnd.encoder.after.to_sparse()}", "torch.sparse"),
    ("aggregate(self, rnd)", "return {'encoder': rnd.encoder.after.to('meta')}", "on meta"),
    (
        "aggregate(self, rnd)",
        nan_for_second("rnd.encoder.after"),
        "mine.aggregate returned NaN or infinity for 'encoder' (client nyud-depth-2, round 1)",
    ),
    ("aggregate(self, rnd)", "return rnd.decoder.after", "mine.aggregate failed: AttributeError: 'NoneType'"),
    ("aggregate(self, rnd)", "raise RuntimeError('a\\nb')", "mine.aggregate failed: RuntimeError: a b ("),
    ("aggregate(self, rnd)", "raise SystemExit", "mine.aggregate failed: sys.exit() is not for a hook"),
    ("local_objective(self, local)", "return 0.5", "mine.local_objective returned a float for 'the objective'"),
    ("local_objective(self, local)", "return torch.ones(3)", "returned (3,) for 'the objective', expected a tensor of"),
    (
        "local_objective(self, local)",
        "return torch.tensor(float('nan'))",
        "mine.local_objective returned nan, expected a finite number (client nyud-depth-1, round 1)",
    ),
    ("local_objective(self, local)", "exit(1)", "failed: sys.exit(1) is not for a hook"),
    ("local_objective(self, local)", "return local.nothing", "'Client' object has no attribute 'nothing'"),
    ("diagnostics(self)", "return [1]", "mine.diagnostics returned a list, expected a dict of plain values (round 1)"),
    ("diagnostics(self)", "return {'x': float('nan')}", "returned what JSON cannot hold"),
    ("diagnostics(self)", "return {'x': torch.ones(1)}", "Tensor is not JSON serializable"),
    ("diagnostics(self)", "d = {}; d['d'] = d; return d", "Circular reference"),
    ("diagnostics(self)", "return {}['x']", "mine.diagnostics failed: KeyError: 'x'"),
    ("local_schedule(self, epochs)", "return [('encoder',)]", "local_schedule returned [('encoder',)] for 2 epochs"),
    ("local_schedule(self, epochs)", "return ['encoder'] * epochs", "local_schedule returned ['encoder', 'encoder']"),
    ("local_schedule(self, epochs)", "return [('body',)] * epochs", "mine.local_schedule returned"),
    ("local_schedule(self, epochs)", "return [()] * epochs", "mine.local_schedule returned [(), ()]"),
    ("local_schedule(self, epochs)", "return 5", "mine.local_schedule returned 5 for 2 epochs"),
    ("local_schedule(self, epochs)", "return {}[1]", "mine.local_schedule failed: KeyError"),
    ("local_schedule(self, epochs)", "raise ValueError('too few')", "local epochs of nyud: too few"),
    ("evaluation_model(self)", "return 'main'", "mine.evaluation_model returned a str, expected an Evaluation"),
    ("evaluation_model(self)", "return Evaluation(track='other')", "chose track 'other'; valid: main (round 1)"),
    ("evaluation_model(self)", "return Evaluation(finetune=('head',))", "chose finetune=('head',), expected kinds"),
    ("billed_copies(self)", "return 0.5", "mine.billed_copies returned 0.5, expected a whole number"),
    ("state_dict(self)", "return [1]", "mine.state_dict returned a list, expected a dict"),
    ("state_dict(self)", "return {'a': [{1: 2}]}", "mine.state_dict returned a int as a key below /a/0"),
    ("state_dict(self)", "return {'a': {1, 2}}", "mine.state_dict returned a set at /a"),
    ("state_dict(self)", "return {'a': torch.eye(2).to_sparse()}", "state_dict returned a tensor (torch.sparse_coo"),
    ("__init__(self, params, parties)", "raise OSError('no')", "mine.__init__ failed: OSError: no"),
    ("__init__(self, params, parties)", "sys.exit('bye')", "mine.__init__ failed: sys.exit(bye) is not for a hook"),
]


@pytest.mark.parametrize(("hook", "body", "said"), ANSWERS, ids=[f"{h.partition('(')[0]}: {b}" for h, b, _ in ANSWERS])
def test_a_wrong_answer_names_the_hook(mine, twins, hook, body, said):
    with pytest.raises(FmtlbenchError) as caught:
        one_round(mine(f"def {hook}:\n        {body}"), twins)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_good_method_and_good_answers(mine, twins):
    federation = one_round(mine(), twins)
    assert federation.algorithm.title == "Mine" and federation.algorithm.has_objective
    assert one_round("fedper", twins).algorithm.has_objective is False


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("tracks = ('other',)", "mine.tracks is ('other',), expected different names with \"main\" among them"),
        ("tracks = 'main'", "mine.tracks is 'main'"),
        ("common = ('head',)", "mine.common is ('head',), expected kinds: encoder, decoder"),
        ("title = 5", "Mine.title: expected text, got 5"),
        ("refuses = classmethod(lambda *given: 7)", "mine.refuses returned 7, expected a text or None"),
        ("refuses = classmethod(lambda *given: given[9])", "mine.refuses failed: IndexError"),
        ("Params = make_dataclass('P', [('x', float, float('nan'))])", "Params.x: nan cannot"),
        ("Params = make_dataclass('P', [('x', object, object())])", "mine.Params.x: <object"),
        ("Params = make_dataclass('P', [('x', 'Nope', 1)])", "mine.Params: NameError"),
    ],
)
def test_what_a_class_says_is_checked_before_anything_is_trained(mine, attributes, said):
    with pytest.raises(FmtlbenchError) as caught:
        admit(resolve(mine(attributes=attributes), "st_mt_1"))
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "return encoders",
            r"mine.newcomer_encoder returned \(2, \d+\) for 'encoder', expected a tensor of shape \(\d+,\)",
        ),
        ("return encoders[0] * float('inf')", r"mine.newcomer_encoder returned NaN or infinity .*\(round 1\)"),
        ("sys.exit()", r"mine.newcomer_encoder failed: sys.exit\(\)"),
    ],
)
def test_the_encoder_for_newcomers(mine, tmp_path, body, said):
    scenario = tmp_path / "late.yml"
    scenario.write_text(
        TWINS + "  - {dataset: nyud, tasks: [edge], id: late, unseen: true}\nevaluation: [global, unseen]\n"
    )
    method = mine(f"def newcomer_encoder(self, encoders):\n        {body}")
    federation = make_federation(method, str(scenario), **{**TINY, "federation.rounds": 1})
    with pytest.raises(MethodError, match=said):
        federation.exchange(federation.train(0), last=True)


def test_on_the_command_line_it_is_one_line_and_the_rounds_before_are_kept(mine, twins, tmp_path, capsys):
    method = mine(
        "def diagnostics(self):\n        self.n = getattr(self, 'n', 0) + 1\n"
        "        return {'x': 1.0} if self.n < 2 else sys.exit(0)"
    )
    flags = as_flags(TINY)
    command = ["run", "--algo", method, "--scenario", twins, "--rounds", "3", "--device", "cpu", *flags]
    assert main([*command, "--out", str(tmp_path / "runs")]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err
    assert err.splitlines()[-1].startswith("fmtlbench: mine.diagnostics failed: sys.exit(0) is not for a hook (")
    assert err.splitlines()[-1].endswith("(round 2)")
    (rows,) = (tmp_path / "runs").rglob("metrics.jsonl")
    assert len(rows.read_text().splitlines()) == 1


# -- a user's file -----------------------------------------------------------------------------------------------------


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return str(path)


@pytest.mark.parametrize("exit_", ["sys.exit(0)", "raise SystemExit", "exit('bye')"])
def test_an_exit_at_import_is_an_error(tmp_path, exit_, capsys):
    file = write(tmp_path / "mine.py", f"import sys\n\n{exit_}\n")
    with pytest.raises(UsageError, match=r"mine\.py:3: SystemExit"):
        resolve(file, "st_mt_1")
    assert main(["run", "--algo", file, "--scenario", "st_mt_1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


METHOD = """
    from fmtlbench.algorithms import ALGORITHMS, Algorithm
    import helper
    from parts.inner import TITLE

    @ALGORITHMS.register("mine")
    class Mine(Algorithm):
        title, paper = helper.WHO + TITLE, "none"

        def notes(self):
            import late
            return [late.WORD]
"""


def with_helpers(folder, who):
    write(folder / "helper.py", f"WHO = {who!r}\n")
    write(folder / "late.py", f"WORD = {who!r}\n")
    write(folder / "parts" / "__init__.py", "")
    write(folder / "parts" / "inner.py", "TITLE = '!'\n")
    return write(folder / "mine.py", METHOD)


def test_a_file_imports_what_lies_beside_it(tmp_path):
    modules = set(sys.modules)
    first, second = with_helpers(tmp_path / "a", "first"), with_helpers(tmp_path / "b", "second")
    for file, who in ((first, "first"), (second, "second"), (first, "first")):
        method = ALGORITHMS.resolve(file)
        assert method.title == f"{who}!" and method.notes(None) == [who]
    write(tmp_path / "a" / "helper.py", "WHO = 'edited'\n")
    assert ALGORITHMS.resolve(first).title == "edited!"
    alone = METHOD.replace("import helper", "").replace("from parts.inner import TITLE", "")
    ALGORITHMS.resolve(write(tmp_path / "c" / "mine.py", alone.replace("helper.WHO + TITLE", "'alone'")))
    left = [name for name in set(sys.modules) - modules if name.partition(".")[0] in ("helper", "parts", "late")]
    assert left == [] and not [place for place in sys.path if str(tmp_path) in place]


def test_an_edited_helper_makes_another_run(tmp_path):
    file = with_helpers(tmp_path / "a", "first")
    before = resolve(file, "st_mt_1")
    assert sorted(before.algorithm.helpers) == ["helper.py", "parts/__init__.py", "parts/inner.py"]
    assert resolve(file, "st_mt_1").hash() == before.hash()
    write(tmp_path / "a" / "helper.py", "WHO = 'other'\n")
    assert resolve(file, "st_mt_1").hash() != before.hash()
    assert resolve("fedavg", "st_mt_1").algorithm.helpers == {}
