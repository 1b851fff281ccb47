"""Where datasets are looked for, and what is said when they are not there."""

from __future__ import annotations

from pathlib import Path

import archives
import pytest
from archives import open_real

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.base.settings_file import config_path, read_user_config
from fmtlbench.data.datasets import _roots, dataset_for


def find_archive(domain, *place, **options):
    folder, reader = _roots.find_archive(dataset_for(domain, "real"), *place, **options)
    return folder, reader.archive


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    """No root is set, and the user's config file is this one, which does not exist yet."""
    file = tmp_path / "settings" / "config.yml"
    file.parent.mkdir()
    monkeypatch.delenv("FMTLBENCH_DATA", raising=False)
    monkeypatch.delenv("FMTLBENCH_CONFIG", raising=False)
    monkeypatch.setattr("platformdirs.user_config_path", lambda name: file.parent)
    return file


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    archives.write_nyudv2(folder)
    return folder


def test_the_flag_comes_before_the_variable_before_the_file(data, tmp_path, config, monkeypatch):
    copies = [tmp_path / name for name in ("flag", "variable", "file")]
    for copy in copies:
        archives.write_nyudv2(copy)
    config.write_text(f"data_root: {copies[2]}\n")
    assert find_archive("nyud") == (copies[2] / "NYUDv2", "NYUDv2")
    monkeypatch.setenv("FMTLBENCH_DATA", str(copies[1]))
    assert find_archive("nyud")[0] == copies[1] / "NYUDv2"
    assert find_archive("nyud", copies[0])[0] == copies[0] / "NYUDv2"


def test_a_root_that_lacks_the_data_does_not_fall_back_to_another(data, tmp_path, monkeypatch):
    monkeypatch.setenv("FMTLBENCH_DATA", str(data))
    with pytest.raises(FmtlbenchError, match="not searched because of --data-root"):
        find_archive("nyud", tmp_path)


def test_the_archives_own_folder_is_a_root_under_any_name(data, tmp_path):
    assert find_archive("nyud", data / "NYUDv2") == (data / "NYUDv2", "NYUDv2")
    renamed = archives.write_nyudv2(tmp_path, "rooms")
    assert find_archive("nyud", renamed) == (renamed, "NYUDv2")
    older = archives.write_nyud_mt(tmp_path)
    assert find_archive("nyud", older.rename(tmp_path / "old")) == (tmp_path / "old", "NYUD_MT")
    pascal = archives.write_pascal(tmp_path)
    assert find_archive("pascal", pascal) == (pascal, "PASCALContext")


def test_the_newer_layout_counts_unless_the_older_is_asked_for(data):
    archives.write_nyud_mt(data)
    assert find_archive("nyud", data)[1] == "NYUDv2"
    assert find_archive("nyud", data, layout="NYUD_MT") == (data / "NYUD_MT", "NYUD_MT")
    assert open_real("nyud", "train", data, layout="NYUD_MT").path(0, "image").suffix == ".jpg"
    with pytest.raises(UsageError, match="--layout: no layout of nyud 'NYUD-MT'; did you mean 'NYUD_MT'"):
        find_archive("nyud", data, layout="NYUD-MT")


def test_relative_roots_are_taken_from_the_working_directory(data, monkeypatch):
    monkeypatch.chdir(data.parent)
    assert find_archive("nyud", "data")[0] == data / "NYUDv2"
    monkeypatch.setenv("FMTLBENCH_DATA", "data")
    folder = find_archive("nyud")[0]
    monkeypatch.chdir(Path("/"))
    assert folder.is_absolute() and (folder / "images").is_dir()
    with pytest.raises(FmtlbenchError, match="/data is not a folder"):
        find_archive("nyud")


def test_nothing_is_assumed_about_the_working_directory(data, monkeypatch):
    monkeypatch.chdir(data)
    with pytest.raises(FmtlbenchError, match="--data-root: not set"):
        find_archive("nyud")


def test_missing_data_say_where_was_looked_and_what_helps(tmp_path, config, monkeypatch):
    monkeypatch.setenv("FMTLBENCH_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FmtlbenchError) as caught:
        open_real("pascal", "train", tmp_path)
    for part in (
        "'pascal'", f"--data-root: {tmp_path} neither holds PASCALContext/", f"$FMTLBENCH_DATA: {tmp_path / 'nowhere'}",
        f"data_root in {config}: not set", "PASCALContext.tar.gz", "--preset nano",
    ):  # fmt: skip
        assert part in str(caught.value)
    with pytest.raises(FmtlbenchError, match=r"NYUDv2/ or NYUD_MT/.*nowhere is not a folder.*NYUD_MT\.tgz"):
        open_real("nyud", "train", None)


# -- the user's config file ------------------------------------------------------------------------------------------


def test_no_file_no_settings(config):
    assert config_path() == config and read_user_config().data_root is None
    config.write_text("")
    assert read_user_config().data_root is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("data-root: /x\n", r"config\.yml:1: .*unknown key 'data-root'; did you mean 'data_root'"),
        ("data_root: here\n", r"config\.yml:1: data_root: expected an absolute path, got 'here'"),
        ("data_root: [1]\n", "expected text"),
        ("- data_root\n", "expected a mapping"),
        ("data_root: [\n", "not valid YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(config, content, message):
    config.write_text(content)
    with pytest.raises(UsageError, match=message):
        find_archive("nyud")


def test_the_files_place_can_be_chosen(data, tmp_path, monkeypatch):
    mine = tmp_path / "mine.yml"
    monkeypatch.setenv("FMTLBENCH_CONFIG", str(mine))
    with pytest.raises(UsageError, match=r"mine\.yml: No such file"):
        read_user_config()
    monkeypatch.setenv("HOME", str(data.parent))
    mine.write_text("data_root: ~/data\n")
    assert find_archive("nyud")[0] == data / "NYUDv2"
