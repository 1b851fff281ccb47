"""Whose electricity: who decides, what is refused, and that the figures are the tables'."""

from __future__ import annotations

import pytest

from fmtlbench.base.errors import UsageError
from fmtlbench.cost.energy import EnergyChoice, choose_energy
from fmtlbench.cost.place import Place, countries, regions, resolve_place
from fmtlbench.cost.tracker import intensity


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    monkeypatch.delenv("FMTLBENCH_COUNTRY", raising=False)
    monkeypatch.delenv("FMTLBENCH_REGION", raising=False)
    (tmp_path / "config.yml").write_text("{}\n")
    monkeypatch.setenv("FMTLBENCH_CONFIG", str(tmp_path / "config.yml"))
    return tmp_path / "config.yml"


def test_argument_before_environment_before_file_before_the_world(monkeypatch, nowhere):
    assert resolve_place() == Place() and str(Place()) == "world average"
    nowhere.write_text("country: USA\nregion: Vermont\n")
    assert resolve_place() == Place("USA", "vermont")
    monkeypatch.setenv("FMTLBENCH_COUNTRY", "swe")
    monkeypatch.setenv("FMTLBENCH_REGION", "SE3")
    assert resolve_place() == Place("SWE", "se3")
    assert resolve_place("fra") == Place("FRA")  # not with the environment's region
    assert str(resolve_place("CAN", "British  Columbia")) == "CAN, british columbia"


@pytest.mark.parametrize(
    ("country", "region", "message"),
    [
        ("FRB", None, r"--country FRB: no such .* did you mean .*'FRA'"),
        ("Germany", None, r"did you mean DEU \(Germany\)\?"),
        ("??", None, "three letters such as"),
        (None, "vermont", "--region vermont: a region needs its country"),
        ("FRA", "bretagne", "no regional figures for FRA"),
        ("USA", "californa", "did you mean 'california'"),
        ("NOR", "SE1", "no such region of NOR; valid: no1"),
    ],
)
def test_what_the_tables_do_not_have_is_refused(country, region, message):
    with pytest.raises(UsageError, match=message):
        resolve_place(country, region)


def test_refusals_name_where_the_word_came_from(monkeypatch, nowhere):
    nowhere.write_text("country: XXX\n")
    with pytest.raises(UsageError, match=r"config.yml: country XXX"):
        resolve_place()
    monkeypatch.setenv("FMTLBENCH_COUNTRY", "YYY")
    with pytest.raises(UsageError, match="FMTLBENCH_COUNTRY YYY"):
        resolve_place()


def test_a_run_refuses_before_it_begins(tiny_run, tmp_path):
    with pytest.raises(UsageError, match="did you mean 'FRA'"):
        tiny_run(country="FRAA")
    assert not (tmp_path / "runs").exists()


def test_intensities_are_the_tables():
    import json
    from pathlib import Path as File

    import codecarbon

    table = File(codecarbon.__file__).parent / "data" / "private_infra" / "global_energy_mix.json"
    mix = json.loads(table.read_text())
    assert set(countries()) == set(mix) and len(mix) > 150
    for code in ("FRA", "CHN", "USA", "POL"):
        assert intensity(Place(code)) == pytest.approx(mix[code]["carbon_intensity"])
    assert intensity(Place()) == 475
    assert 0 < intensity(Place("SWE", "se1")) < 50


@pytest.mark.parametrize("country", ["USA", "CAN", "CHN", "SWE", "NOR", "FIN"])
def test_every_region_has_a_figure_of_its_own(country):
    names = regions(country)
    values = [intensity(Place(country, name)) for name in names]
    assert all(0 <= value < 1500 for value in values)
    assert len(names) == 1 or len(set(values)) > 1  # a fall-back to the country's would make them equal


def test_energy_is_on_unless_somebody_says_no(monkeypatch):
    monkeypatch.delenv("FMTLBENCH_ENERGY")
    assert choose_energy(None, None, None) == EnergyChoice(Place(), None)
    assert choose_energy(False, None, None).off == "turned off (--no-energy)"
    monkeypatch.setenv("FMTLBENCH_ENERGY", "OFF")
    assert "FMTLBENCH_ENERGY=off" in choose_energy(None, None, None).off
    assert choose_energy(True, "FRA", None) == EnergyChoice(Place("FRA"), None)
    monkeypatch.setenv("FMTLBENCH_ENERGY", "maybe")
    with pytest.raises(UsageError, match="expected on or off"):
        choose_energy(None, None, None)
