"""The cards in docs/methods/: one per built-in method, fresh, complete, and with math that Markdown leaves alone."""

from __future__ import annotations

import dataclasses
import re

import method_facts
import pytest
import write_method_cards as cards
from kit import FEW, TRIO, make_federation
from rooms import ROOT

from fmtlbench.algorithms import ALGORITHMS, Algorithm
from fmtlbench.config.resolve import parse_overrides

DOCS = ROOT / "docs"
FOLDER = DOCS / "methods"
FILES = sorted((DOCS.parent / "algorithms").glob("[!_]*.py"))
METHODS = [file.stem for file in FILES]


def card(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def section(name: str, title: str) -> str:
    return card(name).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def math_of(text: str) -> list[str]:
    """Return what stands between dollars, code aside."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    blocks = re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL)
    return blocks + re.findall(r"\$([^$]*)\$", re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL))


def test_every_page_is_fresh():
    for file, text in cards.write_pages().items():
        assert file.read_text(encoding="utf-8") == text, (
            f"{file.name} is stale; python docs/write_method_cards.py makes it anew"
        )


def test_every_method_has_a_card_and_equations_and_nobody_else_has():
    assert len(METHODS) >= 34
    assert {file.stem for file in FOLDER.glob("*.md")} == {*METHODS, "README"}
    assert set(cards.load_equations()["methods"]) == set(METHODS)
    index = cards.INDEX.read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+)\.md\)", index)) == set(METHODS)
    families = [name for family in cards.load_equations()["families"] for name in family["methods"]]
    assert sorted(families) == sorted(METHODS)


def test_a_method_of_another_package_needs_no_card(monkeypatch):
    stranger = type("Stranger", (Algorithm,), {"__module__": "elsewhere.stranger", "title": "S", "paper": "none"})
    assert "stranger" not in ALGORITHMS
    monkeypatch.setattr(ALGORITHMS, "_items", dict(ALGORITHMS._items))
    monkeypatch.setattr(ALGORITHMS, "_origins", dict(ALGORITHMS._origins))
    ALGORITHMS.register("stranger")(stranger)
    assert "stranger" in ALGORITHMS
    assert [method.name for method in cards.built_in() if method.name not in METHODS] == []


def test_equations_use_every_symbol_and_no_unknown_one():
    known = cards.load_equations()
    used = {key for own in known["methods"].values() for key in own["uses"]}
    assert used == set(known["symbols"])


@pytest.mark.parametrize("name", METHODS)
def test_a_card_says_what_the_class_says(name):
    method, text = ALGORITHMS[name], card(name)
    assert f"\n# {method.title}\n" in text and method.paper in text
    assert f"fmtlbench run --algo {name} " in text and f"(../../algorithms/{name}.py)" in text
    assert all(f"`{role}`" in text for role in method.roles)
    options = section(name, "Options")
    for field in dataclasses.fields(method.Params):
        assert f"| `algo.{field.name}` |" in options and field.metadata["doc"] in options


@pytest.mark.parametrize("name", METHODS)
def test_math_is_balanced_and_survives_markdown(name):
    text = card(name)
    assert text.count("\n$$\n") % 2 == 0 and text.count("$$") == text.count("\n$$\n") >= 4
    formulas = math_of(text)
    rest = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert rest.count("$") == 2 * len(formulas) + rest.count("$$")
    for formula in formulas:
        opened, closed = (re.findall(rf"\\{side}(?![a-z])", formula) for side in ("left", "right"))
        assert formula.count("{") == formula.count("}") and len(opened) == len(closed), formula
        assert not re.search(r"\\[^A-Za-z]", formula), f"Markdown eats the backslash: {formula}"
        assert not re.search(r"[^A-Za-z0-9]_|\*|<", formula), f"Markdown may take it for emphasis or a tag: {formula}"


def test_presets_come_with_their_source():
    fedprox = section("fedprox", "Options")
    assert "`algo.mu=0.001` | code: the default of its flag mu |" in fedprox
    given = method_facts.given_by_presets(ALGORITHMS["matfl"])
    assert {(g.preset, g.option, g.value) for g in given} >= {("mat-fl", "friends", 8), ("fmtl-bench", "k", 2)}
    assert all(g.source for name in METHODS for g in method_facts.given_by_presets(ALGORITHMS[name]))


def test_bills_follow_from_the_networks():
    world = method_facts.load_world("st_mt_1")
    encoder, decoder = (world.rows[0][kind].count() for kind in ("encoder", "decoder"))
    clients, decoders = len(world.parties), sum(len(party.tasks) for party in world.parties)

    def total(name, options="", way="up"):
        return [
            bill.ledger.total(way) // 4 for bill in method_facts.make_bills(ALGORITHMS[name], world, options)
        ]  # float32

    assert (clients, decoders) == (6, 9)
    assert total("local") == [0]
    assert total("fedper") == [clients * encoder]
    assert total("fedavg") == total("fedhca2") == [clients * encoder + decoders * decoder]
    assert total("fedmtl", "protocol=whole") == [clients * total("fedmtl")[0]]
    assert total("fedsta", "unify_every=10") == [total("fedper")[0], total("fedavg")[0]]
    assert total("lg_fedavg") == [decoders * decoder]
    assert total("colnet") == [clients * encoder, 0]  # the commonest kind of round first
    assert total("scaffold", way="down") == [2 * total("fedavg")[0], total("fedavg")[0]]
    assert total("fedfomo", "models=3", way="down") == [2 * clients * encoder, 0]
    assert total("mas")[0] == total("fedavg")[0] + encoder  # the client with four tasks has two


MORE_THAN_ROWS = [
    name
    for name in METHODS
    if any(
        getattr(ALGORITHMS[name], hook) is not getattr(Algorithm, hook)
        for hook in ("parcel", "measure", "kept_home", "rows_sent")
    )
]


@pytest.mark.parametrize(
    "name, options",
    [
        *((name, "") for name in MORE_THAN_ROWS),
        ("fedavg", ""),
        ("colnet", ""),
        ("fedbn", "norms=all"),
        ("scaffold", "decoders=task"),
        ("scaffold", "shared=encoder"),
        ("fedfomo", "models=2"),
        ("ifca", "k=3"),
    ],
)
def test_bills_are_the_ledgers_of_a_run(name, options, tmp_path, monkeypatch):
    """In all four rounds, client by client: rows, what stays home of them, and what travels beside them."""
    (tmp_path / "trio.yml").write_text(TRIO)
    # What the affinities of a real run come to is chance.
    monkeypatch.setattr(
        "fmtlbench.algorithms.mas.best_partition", lambda affinity, _: [n % 2 for n in range(len(affinity))]
    )
    given = [*method_facts.needed_options(ALGORITHMS[name]).split(), *options.split()]
    chosen = parse_overrides([f"algo.{option}" for option in given])
    overrides = {**FEW, "train.local_epochs.nyud": 1, "federation.rounds": 4, **chosen}
    with make_federation(name, str(tmp_path / "trio.yml"), **overrides) as federation:
        world = method_facts.make_world(federation.config)
        bills = method_facts.make_bills(ALGORITHMS[name], world, options)
        for index in range(4):
            (bill,) = [bill for bill in bills if index in bill.rounds]
            assert federation.round(index)["ledger"] == bill.ledger.clients, f"round {index + 1}"


def test_what_travels_beside_rows_is_told():
    assert MORE_THAN_ROWS  # and the test above fails for those of them that equations.yml does not know
    assert "| encoder | decoders | heads | beside | up |" in section("scaffold", "What travels")
    assert "down, from round 2 on: the groups' control variates" in section("scaffold", "What travels")
    assert "2 × 110.1 MB" in section("mas", "What travels")
    assert "beside" not in section("fedavg", "What travels")


def test_the_index_says_what_is_left_out():
    index = cards.INDEX.read_text(encoding="utf-8")
    absent = index.partition("## What is left out")[2]
    assert "FedProto" in absent and "MOON" in absent
    titles = {ALGORITHMS[name].title for name in METHODS}
    assert not titles & set(re.findall(r"\w+", "".join(re.findall(r"\*\*(.*?)\*\*", absent))))


def test_heads_travel_with_whole_models_of_alike_clients_only():
    assert "in the decoders' row" in section("fedavg", "What travels")
    assert "in the decoders' row" not in section("fedper", "What travels")


def test_refused_scenarios_are_told_with_the_reason():
    assert re.search(
        r"NULL with `niid6_ubcdmt`: whole models of clients with 2 and 4", section("ditto", "What travels")
    )
    assert "NULL" not in section("fedper", "What travels")
    assert "participation" not in section("mas", "What travels")  # it is st_mt_1 itself that is refused
    assert "`federation.participation` below 1" in section("local", "What travels")


def test_ranks_are_those_of_the_printed_numbers():
    assert "| `st_mt_1` | FedHCA2 | Δ | 2.18 | 1 of 8 |" in section("fedhca2", "Where it stands")
    assert "| resnet FedAvg MD | Δ | NULL | – |" in section("fedavg", "Where it stands")
    assert "(here PCGrad-E)" in section("pcgrad", "Where it stands")
    assert method_facts._rank("1.0", ["1.0", "2.0", "1.0", "OOM"]) == "2 of 3"
    assert method_facts._rank("1.0", ["1.0", "2.0"], up=False) == "1 of 2"


def test_measured_rows_are_those_of_runs():
    board = (DOCS / "leaderboard" / "README.md").read_text(encoding="utf-8")
    measured = section("fedavg", "Where it stands").partition("**Measured**")[2]
    rows = re.findall(r"\| `(\w+)` \| `nano` \| (\S+) ± [\d.]+ (\[[^]]*\]) \| (\d+) \|", measured)
    assert rows and all(f"| {value} {interval} | {seeds} |" in board for _, value, interval, seeds in rows)
    lacking = [name for name in METHODS if "no run of it" in section(name, "Where it stands")]
    assert [name for name in lacking if f"| {ALGORITHMS[name].title} |" in board] == []


@pytest.mark.parametrize("name", METHODS)
def test_deviations_name_the_method(name):
    title = ALGORITHMS[name].title
    rows = method_facts.deviations(ALGORITHMS[name])
    assert all(title in row.where for row in rows)
    text = section(name, "Where public code departs")
    assert "(../deviations.md)" in text and all(row.public in text for row in rows)


def test_brackets_say_whose_code_it_is():
    assert [row.where for row in method_facts.deviations(ALGORITHMS["fedsta"])] == ["FedSTA (FedHCA² supplement)"]
    mine = {row.where for row in method_facts.deviations(ALGORITHMS["fedhca2"])}
    assert not any(where.startswith(("FedAvg", "FedSTA", "all")) for where in mine)


def test_probes_ask_by_role():
    assert "`probe_two_worlds` | `clusters`" in section("matfl", "Probes")
    assert "clusters" not in section("fedavg", "Probes") and "`probe_strangers`" in section("fedavg", "Probes")
    assert "Nothing" in section("local", "Probes")
