"""The papers' claims: what their own numbers say, and how each kind of check decides."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from made_rounds import EIGHTEEN, write_rounds
from made_runs import ST_MT_1
from report_kit import change_lines

from fmtlbench.base.errors import UsageError
from fmtlbench.base.yamlfile import dump_yaml
from fmtlbench.cli import main
from fmtlbench.reports.collect import collect
from fmtlbench.reports.formats import render
from fmtlbench.reports.papers.claims import claims_table, judge, judge_printed, load_claims
from fmtlbench.reports.papers.decide import FAILS, HOLDS, NO_NUMBERS, UNDECIDED
from fmtlbench.reports.papers.published import load_published, number
from fmtlbench.reports.papers.run_checks import EvidenceOfRuns

DO_NOT_HOLD_IN_PRINT = [
    "others_decline_with_clients",
    "every_larger_backbone_better",
    "init_01_best_on_pascal",
    "imbalance_costs_others_one_to_two_points",
    "fedavg_fedprox_robust_to_imbalance",
    "fedavg_fedprox_spared_by_scale",
    "many_task_beats_single_task_at_both_scales",
    "matfl_at_larger_scale_beats_others_at_smaller",
]
ABLATION = "fedhca2_table3_ablation_st_mt_1"
SCALING = "fedhca2_supp_table1_client_scaling"
COST = "fmtlbench_table8_cost_iid1"
UNPRINTED = "fmtlbench_table2_iid1_sdmt"
NIID4 = "fmtlbench_table6_niid4_ubsdmt"


# -- on the papers' numbers --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed():
    return judge_printed()


def named(verdicts, answer):
    return [verdict.claim.name for verdict in verdicts if verdict.answer == answer]


def test_what_holds_on_the_papers_own_numbers_and_what_does_not(printed):
    """What does not hold says what the numbers say instead; all others of which there are numbers hold."""
    assert named(printed, FAILS) == DO_NOT_HOLD_IN_PRINT == [v.claim.name for v in printed if v.claim.entry.audit]
    assert len(named(printed, HOLDS)) == 42 and named(printed, UNDECIDED) == []


def test_without_numbers_are_only_figures_and_tables_without_any(printed):
    for verdict in printed:
        if verdict.answer == NO_NUMBERS and not verdict.claim.entry.figure:
            claim = verdict.claim
            cells = [cell for check in claim.checks for cell in check.cells(claim.published)]
            empty = any(number(cell.row[cell.column]) is None for cell in cells)
            assert empty or len(claim.published) < len(claim.tables), claim.name
        if verdict.claim.entry.figure:
            assert verdict.answer == NO_NUMBERS
            assert "takes stored runs of" in verdict.statistic or "no check: " in verdict.statistic


def test_claims_are_told_apart_and_name_their_place(printed):
    assert len(printed) > 60
    for verdict in printed:
        claim = verdict.claim
        _, where, says = claim.labels
        assert where.startswith(claim.entry.paper) and says[0].isupper() and says[-1] != "."
        assert verdict.statistic


@pytest.mark.parametrize(
    "name, words",
    [
        ("fedhca2_best_on_average", "FedHCA2 over FedAMP (Table 2, delta_m) +0.48"),
        ("every_larger_backbone_better", "Swin-S over Swin-T (pascal_normals_mErr) −0.1"),
        ("others_decline_with_clients", "slope of FedAMP delta_m −0.445"),
        ("fedhca2_best_on_most_metrics_st_mt_2", "5 of 9 groups as claimed, 5 needed"),
        ("init_01_best_on_pascal", "0 of 10 groups as claimed, 6 needed"),
        ("tc_trains_longer", "TC above MD (PCGrad, time_per_round_s) +16.7"),
        ("averaging_gains_more_with_tc", "gain of TC over MD (2C, G, FedAvg) −0.14"),
        ("no_baseline_wins_everywhere", "17 of 17 groups as claimed"),
        (
            "imbalance_costs_others_one_to_two_points",
            "Table 6 below Table 8 (PCGrad, MD, global_delta), up to 2 −22.16",
        ),
    ],
)  # by hand from the tables
def test_statistics_tell_the_differences(printed, name, words):
    (verdict,) = [verdict for verdict in printed if verdict.claim.name == name]
    assert words in verdict.statistic and verdict.statistic.startswith("as printed, one number each, no test: ")


def test_cells_with_words_are_no_part_of_a_claim(printed):
    (verdict,) = [v for v in printed if v.claim.name == "larger_backbone_better"]
    assert "15 as claimed of 15 comparisons" in verdict.statistic  # 18 less FedAvg (NULL), FedAMP-E and FedMTL-E (OOM)


def test_the_table_of_verdicts(printed):
    table = claims_table(printed)
    assert table.caption.startswith(f"{len(printed)} claims on the papers' printed numbers: holds 42")
    text = render([table], "csv")
    assert text.splitlines()[0].startswith("table,claim,where,says,answer,statistic")
    assert "in print: Normals of PASCAL-Context get worse" in render([table], "md")


def test_the_command(capsys, tmp_path):
    assert main(["published", ABLATION, "--claims", "--format", "md"]) == 0
    out = capsys.readouterr().out
    assert "2 claims on the papers' printed numbers: holds 2" in out and r"both\_aggregations\_best" in out
    file = tmp_path / "claims.csv"
    assert main(["published", "--claims", "--format", "csv", "-o", str(file)]) == 0
    assert file.read_text().count("does not hold") == len(DO_NOT_HOLD_IN_PRINT)
    assert main(["published", ABLATION[:-1], "--claims"]) == 2
    assert f"did you mean '{ABLATION}'" in capsys.readouterr().err


# -- kinds of checks on made numbers -----------------------------------------------------------------------------------


class Made:
    """Numbers of the test's choosing: row name → column → seeds."""

    def __init__(self, table, numbers):
        self.table, self.name, self.numbers = load_published(table), table, numbers

    def values(self, row, column):
        return self.numbers.get(self.table.row_name(row), {}).get(column)


def seeds(mean, spread=0.1, n=5):
    """Numbers by seed around a mean."""
    return {seed: mean + spread * (seed - (n - 1) / 2) for seed in range(n)}


def wild(mean, n=5):
    """Numbers so far apart that their mean says nothing."""
    return {seed: mean + 50 * (-1) ** seed for seed in range(n)}


def write(tmp_path, check, **given):
    """Write a file of one claim."""
    checks = {"checks": check} if isinstance(check, list) else {"check": check}
    entry = {"paper": "fedhca2", "where": "4", "says": "Something", **checks, **given}
    file = tmp_path / "claims.yml"
    extra = {"alike": {"method": {"FedProx-E": "FedProx"}}}
    file.write_text(dump_yaml({"claims": {"made": entry}, **extra}))
    return file


def decided(tmp_path, check, *evidence, runs=None, **given):
    claim = load_claims(write(tmp_path, check, **given))["made"]
    return judge(claim, {one.name: one for one in evidence}, runs)


BEST = {"kind": "better", "rows": {"method": "+Enc+Dec"}, "columns": ["delta_m"]}


def ablation(**means):
    """Δm by row of the ablation's table."""
    rows = {"Local": "local", "+Enc": "enc", "+Dec": "dec", "+Enc+Dec": "both"}
    found = {row: means[name] for row, name in rows.items() if name in means}
    return Made(ABLATION, {r: {"delta_m": v if isinstance(v, Mapping) else seeds(v)} for r, v in found.items()})


@pytest.mark.parametrize(
    "numbers, answer, words",
    [
        ({"local": wild(0), "enc": 1, "dec": 2, "both": 9}, UNDECIDED, "2 as claimed, 1 undecided of 3 comparisons"),
        ({"local": 0, "enc": 1, "dec": 2, "both": {0: 3.0}}, UNDECIDED, "one seed, no test: 3 undecided"),
        ({"local": 0, "enc": 1, "both": 3}, UNDECIDED, "no numbers: +Enc+Dec over +Dec (delta_m)"),
        ({"local": 9, "enc": 1, "both": 3}, FAILS, "1 the other way of 2 comparisons"),
        ({"local": 0}, NO_NUMBERS, "no numbers: "),
    ],
)
def test_best_by_seeds(tmp_path, numbers, answer, words):
    verdict = decided(tmp_path, BEST, ablation(**numbers), table=ABLATION)
    assert verdict.answer == answer and words in verdict.statistic


def test_better_by_seeds_is_a_paired_test_corrected_by_holm(tmp_path):
    base = {0: 1.0, 1: 7.0, 2: -3.0}
    ahead = {seed: value + 0.5 + 0.01 * seed for seed, value in base.items()}  # apart only in pairs
    verdict = decided(tmp_path, BEST, ablation(local=base, enc=base, dec=base, both=ahead), table=ABLATION)
    assert (
        verdict.answer == HOLDS and "t-tests over 3 seeds, Holm over 3 comparisons: 3 as claimed" in verdict.statistic
    )
    behind = {seed: 2 * value - ahead[seed] for seed, value in base.items()}
    verdict = decided(tmp_path, BEST, ablation(local=base, enc=base, dec=base, both=behind), table=ABLATION)
    assert verdict.answer == FAILS and "3 the other way" in verdict.statistic
    one = {**BEST, "than": {"method": "Local"}}
    sure = {0: 1.0, 1: 1.5, 2: 0.8}  # t = 5.3 of two degrees: p = 0.017 alone, 0.051 as one of three
    both = {seed: base[seed] + sure[seed] for seed in base}
    numbers = ablation(local=base, enc=base, dec=base, both=both)
    alone, family = (decided(tmp_path, check, numbers, table=ABLATION) for check in (one, BEST))
    assert (alone.answer, family.answer) == (HOLDS, UNDECIDED)


def test_only_common_seeds_are_compared(tmp_path):
    check = {**BEST, "than": {"method": "Local"}}
    apart = ablation(local={0: 0.0, 1: 0.1}, both={2: 5.0, 3: 5.1})
    assert decided(tmp_path, check, apart, table=ABLATION).answer == NO_NUMBERS
    two = ablation(local={0: 0.0, 1: 0.1, 2: 9.0}, both={0: 5.0, 1: 5.2, 3: 1.0, 4: float("nan")})
    assert "over 2 seeds" in decided(tmp_path, check, two, table=ABLATION).statistic


def test_most_columns_by_seeds(tmp_path):
    columns = ["pascal_semseg_mIoU", "pascal_normals_mErr", "nyud_depth_RMSE"]
    check = {"kind": "better", "rows": {"method": "+Enc+Dec"}, "than": {"method": "Local"}, "columns": columns}
    check |= {"per": ["column"], "need": "most"}

    def judged(*pairs):
        local, both = ({c: v for c, v in zip(columns, side)} for side in zip(*pairs))
        return decided(tmp_path, check, Made(ABLATION, {"Local": local, "+Enc+Dec": both}), table=ABLATION).answer

    up = (seeds(50), seeds(60))
    lower_error, higher_error = (seeds(20), seeds(10)), (seeds(10), seeds(20))
    no_idea = (seeds(10), wild(10))
    assert judged(up, lower_error, higher_error) == HOLDS
    assert judged(up, higher_error, higher_error) == FAILS
    assert judged(up, higher_error, no_idea) == UNDECIDED
    assert judged(up, (None, None), (None, None)) == UNDECIDED


def test_differences_between_bounds(tmp_path):
    check = {**BEST, "than": {"method": "Local"}, "at_least": -0.5, "at_most": 0.5}

    def judged(both):
        return decided(tmp_path, check, ablation(local=0, both=both), table=ABLATION).answer

    flat = {seed: 0.1 * (seed - 2) + 0.01 * (seed % 2) for seed in range(5)}
    assert judged(flat) == HOLDS
    assert judged(3) == FAILS and judged(-3) == FAILS
    assert judged(wild(0)) == UNDECIDED


def test_ties_count_only_where_they_are_told_to(tmp_path):
    same = Made(ABLATION, {row: {"delta_m": 1.0} for row in ("Local", "+Enc", "+Dec", "+Enc+Dec")})
    assert decided(tmp_path, BEST, same, table=ABLATION).answer == FAILS
    assert decided(tmp_path, {**BEST, "ties": True}, same, table=ABLATION).answer == HOLDS


def test_higher_and_lower_do_not_ask_what_is_better(tmp_path):
    rows = {"Local MD": {"power_W": seeds(1)}, "Local TC": {"power_W": seeds(2)}}
    check = {"rows": {"arch": "TC"}, "than": {"arch": "MD"}, "among": {"method": "Local"}, "columns": ["power_W"]}
    made = Made(COST, rows)
    assert decided(tmp_path, {"kind": "higher", **check}, made, table=COST).answer == HOLDS
    assert decided(tmp_path, {"kind": "lower", **check}, made, table=COST).answer == FAILS
    with pytest.raises(UsageError, match=r"claim made.*power_W has no direction; compare it by higher or lower"):
        decided(tmp_path, {"kind": "better", **check}, made, table=COST)


@pytest.mark.parametrize("by", ["steps", "trend"])
def test_along_rows(tmp_path, by):
    check = {"kind": "improves", "along": {"scale": ["1C", "2C", "4C"]}, "by": by, "columns": ["delta_m"]}
    check["among"] = {"method": "FedAvg"}

    def judged(*values, kind="improves"):
        rows = {f"{scale} FedAvg": {"delta_m": v} for scale, v in zip(("1C", "2C", "4C"), values)}
        return decided(tmp_path, {**check, "kind": kind}, Made(SCALING, rows), table=SCALING).answer

    assert judged(seeds(1), seeds(2), seeds(3, 0.2)) == HOLDS
    assert judged(seeds(1), seeds(2), seeds(3, 0.2), kind="declines") == FAILS
    assert judged(seeds(1), seeds(0), seeds(3, 0.2)) == {"steps": FAILS, "trend": HOLDS}[by]
    assert judged(seeds(1), wild(2), wild(3)) == UNDECIDED
    assert judged(seeds(1), seeds(2)) == UNDECIDED if by == "steps" else NO_NUMBERS


def test_gains_between_tables(tmp_path):
    check = {
        "kind": "gains_more",
        "rows": {"method": "FedAvg"},
        "than": {"method": "Local"},
        "columns": ["global_delta"],
    }
    check |= {"start": {"table": COST}, "end": {"table": NIID4}, "among": {"arch": "MD"}}

    def judged(lost, other):
        before = Made(COST, {f"{m} MD": {"global_delta": seeds(10, 1)} for m in ("FedAvg", "Local")})
        after = {"FedAvg MD": {"global_delta": lost}, "Local MD": {"global_delta": other}}
        return decided(tmp_path, check, before, Made(NIID4, after), tables=[COST, NIID4]).answer

    assert judged(seeds(9), seeds(5, 0.2)) == HOLDS
    assert judged(seeds(5), seeds(9, 0.2)) == FAILS
    assert judged(seeds(5), wild(5)) == UNDECIDED


def test_printed_and_measured_numbers_do_not_meet(tmp_path):
    check = {"kind": "worse", "rows": {"table": NIID4}, "than": {"table": COST}, "columns": ["global_delta"]}
    measured = Made(NIID4, {"Local MD": {"global_delta": seeds(1)}})
    verdict = decided(tmp_path, check, load_published(COST), measured, tables=[COST, NIID4])
    assert verdict.answer == NO_NUMBERS


def test_outlier(tmp_path):
    check = {"kind": "outlier", "rows": {"method": "PCGrad", "arch": "TC"}, "columns": ["power_W"]}
    check["among"] = {"method": ["PCGrad", "Local"]}

    def judged(far):
        rows = {"Local MD": seeds(1), "Local TC": seeds(2), "PCGrad MD": seeds(3), "PCGrad TC": far}
        return decided(tmp_path, check, Made(COST, {r: {"power_W": v} for r, v in rows.items()}), table=COST).answer

    assert judged(seeds(9)) == HOLDS and judged(seeds(4)) == FAILS and judged(wild(5)) == UNDECIDED


def test_spread_by_task(tmp_path):
    check = {"kind": "spread_differs", "columns": ["global_depth_RMSE_x100", "global_semseg_mIoU"], "times": 2}
    check["among"] = {"method": "Local", "arch": "MD"}

    def judged(*stds):
        cells = {column: seeds(100) for column in check["columns"]}
        cells |= {f"{column}_std": std for column, std in zip(check["columns"], stds)}
        return decided(tmp_path, check, Made(NIID4, {"Local MD": cells}), table=NIID4).answer

    assert judged(seeds(1), seeds(5)) == HOLDS and judged(seeds(4), seeds(5)) == FAILS
    assert judged(seeds(4), {0: 5.0, 1: 20.0, 2: 4.0, 3: 21.0}) == UNDECIDED and judged(seeds(4)) == NO_NUMBERS


def test_no_winner(tmp_path):
    check = {"kind": "no_winner", "rows_are": ["method", "arch"], "columns": ["global_delta"]}
    check["among"] = {"method": ["FedAvg", "Local"], "arch": "MD"}

    def judged(there, tables=(NIID4, COST)):
        here = {"FedAvg MD": {"global_delta": seeds(5)}, "Local MD": {"global_delta": seeds(0, 0.2)}}
        other = {"FedAvg MD": {"global_delta": seeds(0)}, "Local MD": {"global_delta": there}}
        return decided(tmp_path, check, Made(NIID4, here), Made(COST, other), tables=list(tables)).answer

    assert judged(seeds(5, 0.2)) == HOLDS  # each is beaten once
    assert judged(seeds(-5, 0.2)) == FAILS  # FedAvg is ahead in both
    assert judged(wild(-1)) == UNDECIDED
    assert judged(seeds(5, 0.2), (NIID4, UNPRINTED)) == UNDECIDED  # it may be beaten there


def test_tables_without_printed_numbers_leave_a_claim_open(tmp_path):
    check = {"kind": "better", "rows": {"method": "FedAvg", "arch": "MD"}, "columns": ["global_delta"]}
    check["than"] = {"method": "Local", "arch": "MD"}
    printed = load_published(NIID4)
    assert decided(tmp_path, check, load_published(UNPRINTED), table=UNPRINTED).answer == NO_NUMBERS
    assert decided(tmp_path, check, printed, tables=[NIID4, UNPRINTED]).answer == UNDECIDED
    worst = {**check, "rows": check["than"], "than": check["rows"]}
    assert decided(tmp_path, worst, printed, tables=[NIID4, UNPRINTED]).answer == FAILS


# -- kinds of checks on runs -------------------------------------------------------------------------------------------


def write_runs(root, algorithm, scenario, clients, change=None, count=3, **given):
    """Runs of some seeds; `change` edits what a round tells: (row, seed) → None."""
    for seed in range(count):
        folder = write_rounds(root, algorithm, seed, clients, rounds=10, scenario=scenario, **given)
        if change:
            change_lines(folder / "metrics.jsonl", lambda row, seed=seed: change(row, seed) or row)


def weights(alpha, beta):
    """Let FedHCA² tell these: α(round, seed) of all clients, β(round, layer, seed) of all decoders."""

    def change(row, seed):
        told, r = row["algorithm"], row["round"]
        told["alpha"] = {c: alpha(r, seed) for c in told["alpha"]}
        told["beta"] = {d: [beta(r, layer, seed) * (1 + k) for layer in range(6)] for k, d in enumerate(told["beta"])}

    return change


def noise(seed):
    return 0.0001 * seed


def rocking(seed):
    return 0.2 * (-1) ** seed


@pytest.mark.parametrize(
    "check, right, wrong, open_",
    [
        (
            {"kind": "alpha_rises"},
            (lambda r, s: 0.1 + (0.01 + noise(s)) * r, lambda r, layer, s: 0.1),
            (lambda r, s: 0.9 - (0.01 + noise(s)) * r, lambda r, layer, s: 0.1),
            (lambda r, s: 0.5 + 0.1 * rocking(s) * r, lambda r, layer, s: 0.1),
        ),
        (
            {"kind": "alpha_peaks", "at": 0.2},
            (lambda r, s: 0.9 - (0.01 + noise(s)) * abs(r - 2), lambda r, layer, s: 0.1),
            (lambda r, s: 0.1 + (0.01 + noise(s)) * r, lambda r, layer, s: 0.1),
            (lambda r, s: 0.5 + rocking(s) * (r == 2), lambda r, layer, s: 0.1),
        ),
        (
            {"kind": "beta_lowest"},
            (lambda r, s: 0.1, lambda r, layer, s: 0.07 - (0.01 + noise(s)) * layer),
            (lambda r, s: 0.1, lambda r, layer, s: 0.01 + (0.01 + noise(s)) * layer),
            (lambda r, s: 0.1, lambda r, layer, s: 0.05 + 0.1 * rocking(s) * (layer == 5)),
        ),
        (
            {"kind": "beta_varies", "times": 2},
            (lambda r, s: 0.1, lambda r, layer, s: (0.001 + noise(s) / 10) * (1 + layer)),
            (lambda r, s: 0.1, lambda r, layer, s: 0.09 + noise(s)),
            (lambda r, s: 0.1, lambda r, layer, s: 0.01 + (0.03 * (layer == 5) if s == 0 else 0)),
        ),
        (
            {"kind": "beta_stays"},
            (lambda r, s: 0.1, lambda r, layer, s: (0.005 + noise(s)) * r),
            (lambda r, s: 0.1, lambda r, layer, s: 0.08 - (0.005 + noise(s)) * r),
            (lambda r, s: 0.1, lambda r, layer, s: 0.05 + 0.01 * rocking(s) * r),
        ),
    ],
    ids=lambda value: value.get("kind") if isinstance(value, dict) else "",
)
def test_hyper_weights(tmp_path, check, right, wrong, open_):
    for made, answer in ((right, HOLDS), (wrong, FAILS), (open_, UNDECIDED)):
        root = tmp_path / answer
        write_runs(root, "fedhca2", "st_mt_1", ST_MT_1, weights(*made))
        runs = EvidenceOfRuns(collect([root]).runs)
        given = {"figure": "Fig. 6", "scenario": "st_mt_1"}
        verdict = decided(tmp_path, {**check, "method": "FedHCA²"}, runs=runs, **given)
        assert verdict.answer == answer, verdict.statistic
    assert decided(tmp_path, {**check, "method": "FedAvg"}, runs=runs, **given).answer == NO_NUMBERS


NINE_TASKS = {"figure": "Fig. 5", "scenario": "matfl_pascal_nyud9"}


def grouping(friends, votes):
    """Let MaT-FL tell these: friends(client, seed), and which clients (numbers) a layer votes for."""

    def change(row, seed):
        ids = list(EIGHTEEN)
        row["algorithm"]["groups"] = {c: sorted({c, *friends(c, seed)}) for c in ids}
        made = [[[int(j in votes(i, layer, seed)) for j in range(18)] for i in range(18)] for layer in range(4)]
        told = {"layers": [f"layer{k}.weight" for k in range(4)], "clients": ids, "votes": made}
        row["algorithm"]["votes"] = told

    return change


def twin(client):
    return client[:-1] + {"1": "2", "2": "1"}[client[-1]]


@pytest.mark.parametrize("across", [False, True])
def test_groups_and_votes(tmp_path, across):
    semseg = {"clients": ["pascal", "semseg"], "take": ["nyud", "semseg"]} if across else {}
    check = {"kind": "grouped", "method": "MaT-FL", "at_least": 0.9, **semseg}
    agree = {"kind": "votes_agree", "method": "MaT-FL", "at_least": 0.5}
    strangers = ["nyud-semseg-1", "nyud-semseg-2"]

    def right(client, seed):
        return [twin(client), *strangers]

    def never(client, seed):
        return ["nyud-depth-1"]

    cases = {
        HOLDS: (right, lambda i, layer, seed: {i, (i + 1) % 18, (i + 2) % 18}),
        FAILS: (never, lambda i, layer, seed: {i, (i + 1 + layer) % 18}),
        UNDECIDED: (
            lambda client, seed: right(client, seed) if seed else never(client, seed),
            lambda i, layer, seed: {i, (i + 1 + layer * (seed > 0)) % 18},
        ),
    }
    for answer, made in cases.items():
        write_runs(tmp_path / answer, "matfl", "matfl_pascal_nyud9", EIGHTEEN, grouping(*made))
        runs = EvidenceOfRuns(collect([tmp_path / answer]).runs)
        for asked in (check, agree):
            verdict = decided(tmp_path, asked, runs=runs, **NINE_TASKS)
            assert verdict.answer == answer, verdict.statistic


@pytest.mark.parametrize("across", [False, True])
def test_updates_by_task(tmp_path, across):
    owners = [[c, None] for c in EIGHTEEN]
    tasks = [task for _, (task,) in EIGHTEEN.values()]

    def told(by_task):
        def change(row, seed):
            alike = 0.5 if by_task(seed) else -0.1
            size = range(len(tasks))
            same = [[1.0 if i == j else alike * (tasks[i] == tasks[j]) + noise(seed) * (i != j) * (tasks[i] == tasks[j])
                     for j in size] for i in size]  # fmt: skip
            if "updates" in row:
                row["updates"] = {"encoder": {"owners": owners, "gram": same}}

        return change

    check = {"kind": "updates_cluster", "method": "FedAvg", "across": across}
    cases = {HOLDS: lambda seed: True, FAILS: lambda seed: False, UNDECIDED: lambda seed: seed > 1}
    for answer, by_task in cases.items():
        write_runs(tmp_path / answer, "fedavg", "matfl_pascal_nyud9", EIGHTEEN, told(by_task))
        runs = EvidenceOfRuns(collect([tmp_path / answer]).runs)
        verdict = decided(tmp_path, check, runs=runs, **NINE_TASKS)
        assert verdict.answer == answer, verdict.statistic
    write_runs(tmp_path / "silent", "local", "matfl_pascal_nyud9", EIGHTEEN)
    silent = EvidenceOfRuns(collect([tmp_path / "silent"]).runs)
    verdict = decided(tmp_path, {**check, "method": "Local"}, runs=silent, **NINE_TASKS)
    assert verdict.answer == NO_NUMBERS and "no updates of encoders" in verdict.statistic


@pytest.mark.parametrize("kind", ["ends_better", "faster"])
def test_scores_of_runs(tmp_path, kind):
    values = {("pascal-sal", "sal"): 60.0, ("nyud-multi", "normals"): 20.0}
    better = {("pascal-sal", "sal"): 70.0, ("nyud-multi", "normals"): 10.0}
    for algorithm, scores in (("local", values), ("fedavg", values), ("fedhca2", better)):
        for seed in range(3):
            moved = {at: value + 0.01 * seed * (algorithm == "fedhca2") for at, value in scores.items()}
            write_rounds(tmp_path, algorithm, seed, ST_MT_1, scenario="st_mt_1", values=moved)
    runs = EvidenceOfRuns(collect([tmp_path]).runs)
    given = {"figure": "Fig. 4", "scenario": "st_mt_1"}
    check = {"kind": kind, "than": ["Local", "FedAvg"], "columns": ["pascal/sal", "nyud/normals"]}
    assert decided(tmp_path, {**check, "method": "FedHCA²"}, runs=runs, **given).answer == HOLDS
    worse = {**check, "method": "Local", "than": ["FedHCA²"]}
    assert decided(tmp_path, worse, runs=runs, **given).answer == FAILS
    everywhere = {"kind": kind, "than": ["Local"], "method": "FedHCA²", "need": "most"}
    verdict = decided(tmp_path, everywhere, runs=runs, **given)
    assert verdict.answer == UNDECIDED, verdict.statistic  # equal in seven of nine columns
    missing = {**check, "method": "FedHCA²", "than": ["Local", "MaT-FL"]}
    verdict = decided(tmp_path, missing, runs=runs, **given)
    assert verdict.answer == UNDECIDED and "no run of MaT-FL on st_mt_1" in verdict.statistic


def test_two_runs_of_one_seed_are_refused(tmp_path):
    for rounds in (4, 6):
        write_rounds(tmp_path, "fedhca2", 0, ST_MT_1, rounds=rounds, scenario="st_mt_1")
    runs = EvidenceOfRuns(collect([tmp_path]).runs)
    with pytest.raises(UsageError, match="FedHCA² on st_mt_1 has two runs of seed 0, expected one"):
        runs.of("st_mt_1", "FedHCA²")


def test_every_claim_about_a_figure_takes_runs(tmp_path):
    write_runs(tmp_path, "fedhca2", "st_mt_1", ST_MT_1, count=2)
    runs = EvidenceOfRuns(collect([tmp_path]).runs)
    for claim in load_claims().values():
        if claim.run_checks:
            verdict = judge(claim, {}, runs)
            told = any(word in claim.name for word in ("alpha", "beta")) and claim.entry.scenario == "st_mt_1"
            assert (verdict.answer == NO_NUMBERS) != told, verdict.statistic


# -- mistakes in the file ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "check, given, words",
    [
        ({**BEST, "kind": "bettr"}, {}, "claim made: no kind of check 'bettr'; did you mean 'better'"),
        ({**BEST, "columns": ["delta"]}, {}, "claim made.columns: no column 'delta'; did you mean 'deltas'"),
        ({**BEST, "rows": {"methd": "Local"}}, {}, "claim made.rows: no head of rows 'methd'; did you mean 'method'"),
        ({**BEST, "rows": {"method": "+Enc+Dek"}}, {}, r"claim made.rows: no method '\+Enc\+Dek'; did you mean '\+Enc"),
        ({**BEST, "than": {"method": ["Locl"]}}, {}, "claim made.than: no method 'Locl'; did you mean 'Local'"),
        ({**BEST, "need": "mst"}, {}, "claim made.need: 'mst' is no share; did you mean 'most'"),
        ({**BEST, "per": ["colum"]}, {}, "claim made.per: no head of rows 'colum'; did you mean 'column'"),
        ({**BEST, "row": {}}, {}, "claims.made.check.row: unknown key 'row'; did you mean 'rows'"),
        (BEST, {"table": ABLATION[:-1]}, f"claim made: no published table '.*'; did you mean '{ABLATION}'"),
        (BEST, {"paper": "fedhca"}, "claim made: no paper 'fedhca'; did you mean 'fedhca2"),
        (BEST, {"figure": "Fig. 1"}, "claim made: expected one of table, tables and figure"),
        (BEST, {"unchecked": "why"}, "claim made: expected one of check, checks and unchecked"),
        (BEST, {"table": None, "figure": "Fig. 1"}, "claim made: a check on runs needs the scenario"),
        ({**BEST, "than": {"method": "+Enc+Dec"}}, {}, "claim made: better: no two cells to compare"),
        (
            {"kind": "improves", "along": {"method": "Local"}, "columns": ["delta_m"]}, {},
            "claim made.along: expected one head with at least two values in order",
        ),
        (
            {"kind": "grouped", "method": "MaT-FL", "at_least": 0.9, "take": ["nyud"]},
            {"table": None, "figure": "Fig. 5", "scenario": "duo"}, "claim made: clients and take name a dataset and",
        ),
        (
            {"kind": "alpha_rise", "method": "FedHCA²"}, {"table": None, "figure": "Fig. 6", "scenario": "duo"},
            "claim made: no kind of check 'alpha_rise'; did you mean 'alpha_rises'",
        ),
    ],
)  # fmt: skip
def test_mistakes_name_the_claim_and_what_is_close(tmp_path, check, given, words):
    file = write(tmp_path, check, **{"table": ABLATION, **given})
    with pytest.raises(UsageError, match=words) as error:
        load_claims(file)
    assert "\n" not in str(error.value) and str(error.value).startswith(f"{file}:")
