"""Which folder a run has, by what other code has left in the config's own: chosen alike by every process."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import time

import pytest

from fmtlbench.config.request import ANY_CODE
from fmtlbench.config.resolve import resolve
from fmtlbench.runs.code_identity import PARTS, CodeIdentity
from fmtlbench.runs.recorded_code import choose_run_folder, lasting_sessions, summarize_code
from fmtlbench.runs.store import RunStore, StoreError

SUMMARY = {
    "algorithm": "",
    "scenario": "",
    "preset": "",
    "data": "",
    "seed": 0,
    "rounds": 2,
    "clients": [],
    "scores": [],
}


def make_code(**files):
    """An identity; `method="2"` stands for an edited fedper.py."""
    known = {part: {f"{part}.py": "1" * 64} for part in PARTS} | {"method": {"algorithms/fedper.py": "1" * 64}}
    for part, version in files.items():
        known[part] = {name: version * 64 for name in known[part]}
    return CodeIdentity.of(known)


OLD, NEW = make_code(), make_code(method="2")


def session(code, from_round=1):
    made = {"started": "", "versions": {}, "from_round": from_round}
    if code is not None:
        made["code"] = {"sha256": code.sha256, "parts": code.parts, "files": code.files}
    return made


def write(folder, code, finished=True, earlier=()):
    """What a run leaves in its folder, as far as it tells of code."""
    folder.mkdir(parents=True, exist_ok=True)
    sessions = [session(code) for code in (*earlier, code)]
    for number, one in enumerate(sessions):
        one["from_round"] = number + 1
    (folder / "manifest.json").write_text(json.dumps({"config_hash": "", "data": {}, "sessions": sessions}))
    if finished:
        made = dict(SUMMARY) if code is None else {**SUMMARY, "code": summarize_code(sessions)}
        (folder / "summary.json").write_text(json.dumps(made))


@pytest.fixture
def base(tmp_path):
    return tmp_path / "st_mt_1" / "fedper" / "nano-synth-s0-12345678"


def own(base, code):
    return base.with_name(f"{base.name}-{code.sha256[:6]}")


def test_an_empty_place_is_anybodys(base):
    assert choose_run_folder(base, NEW).folder == base == choose_run_folder(base, NEW, ANY_CODE).folder
    base.mkdir(parents=True)  # begun, and nothing made yet
    (base / "config.yaml").write_text("format: 2\n")
    assert choose_run_folder(base, NEW).folder == base


@pytest.mark.parametrize("finished", [True, False])
def test_the_same_code_goes_where_it_was(base, finished):
    write(base, OLD, finished)
    place = choose_run_folder(base, OLD)
    assert (place.folder, place.note, place.change) == (base, "", "")
    assert choose_run_folder(base, OLD, ANY_CODE) == place


@pytest.mark.parametrize(("finished", "verb"), [(True, "shows"), (False, "continues")])
def test_other_code_gets_a_folder_of_its_own(base, finished, verb):
    write(base, OLD, finished)
    place = choose_run_folder(base, NEW)
    assert place.folder == own(base, NEW) and not place.is_by_other
    assert place.note == (
        f"{base} was made by other code (method: fedper.py changed); this run goes to {place.folder}; "
        f"--reuse any {verb} the old one"
    )
    write(place.folder, NEW)
    assert choose_run_folder(base, NEW).folder == place.folder and choose_run_folder(base, OLD).folder == base


def test_a_run_without_a_recorded_code_is_by_other_code(base):
    write(base, None)
    place = choose_run_folder(base, NEW)
    assert place.folder == own(base, NEW) and "(which was not recorded)" in place.note
    write(base, None, finished=False)
    (base / "summary.json").unlink()
    assert choose_run_folder(base, NEW).folder == own(base, NEW)


def test_a_run_by_two_codes_is_neithers(base):
    write(base, NEW, earlier=[OLD])
    for code in (OLD, NEW):
        place = choose_run_folder(base, code)
        assert place.folder == own(base, code) and "2 versions of it, one after the other" in place.note


def test_a_second_folder_that_other_code_went_on_in_is_left_alone_too(base):
    write(base, OLD)
    third = make_code(engine="3")
    write(own(base, NEW), third, earlier=[NEW])
    place = choose_run_folder(base, NEW)
    assert place.folder == base.with_name(f"{base.name}-{NEW.sha256[:7]}") and not place.folder.exists()
    write(place.folder, NEW)
    assert choose_run_folder(base, NEW).folder == place.folder
    os.utime(base / "summary.json", (1, 1))
    os.utime(own(base, NEW) / "summary.json", (2, 2))
    assert choose_run_folder(base, third, ANY_CODE).folder == place.folder


def test_a_folder_of_ones_own_is_found_again_when_the_first_one_is_gone(base):
    write(own(base, NEW), NEW)
    assert choose_run_folder(base, NEW).folder == own(base, NEW)
    assert choose_run_folder(base, OLD).folder == base


def test_any_takes_the_newest_finished_one(base):
    write(base, OLD)
    write(own(base, NEW), NEW)
    third = make_code(engine="3")
    os.utime(base / "summary.json", (1, 1))
    place = choose_run_folder(base, third, ANY_CODE)
    assert place.folder == own(base, NEW) and place.is_by_other
    assert place.note == (
        f"{place.folder} was made by other code (engine: engine.py changed; method: fedper.py changed) and is shown, "
        "as --reuse any asks for"
    )
    os.utime(own(base, NEW) / "summary.json", (0, 0))
    assert choose_run_folder(base, third, ANY_CODE).folder == base


def test_any_goes_on_with_an_unfinished_one_and_with_its_own_first(base):
    write(base, OLD, finished=False)
    place = choose_run_folder(base, NEW, ANY_CODE)
    assert place.folder == base and place.is_by_other and "is continued by this code" in place.note
    write(own(base, NEW), NEW, finished=False)
    os.utime(own(base, NEW) / "manifest.json", (1, 1))
    assert choose_run_folder(base, NEW, ANY_CODE).folder == own(base, NEW)
    write(base, OLD)
    assert choose_run_folder(base, NEW, ANY_CODE).folder == base  # finished ones come first


@pytest.mark.parametrize("text", ["", "{", '{"format": 99}'])
def test_what_is_damaged_is_for_whoever_opens_it(base, text):
    write(base, OLD)
    (base / "summary.json").write_text(text)
    assert choose_run_folder(base, NEW).folder == base


def test_files_are_not_named_where_the_manifest_is_lost(base):
    write(base, OLD)
    (base / "manifest.json").unlink()
    assert choose_run_folder(base, NEW).change == "method changed"


def test_sessions_of_which_nothing_is_left_do_not_count():
    a, b, c = make_code(), make_code(method="2"), make_code(method="3")
    sessions = [session(a, 1), session(b, 5), session(b, 5), session(c, 3)]
    assert [one["from_round"] for one in lasting_sessions(sessions)] == [1, 3]
    code = summarize_code(sessions)
    assert (code["sha256"], [one["sha256"] for one in code["earlier"]]) == (c.sha256, [a.sha256])
    again = summarize_code([session(a, 1), session(b, 2), session(a, 3)])
    assert (again["sha256"], [one["sha256"] for one in again["earlier"]]) == (a.sha256, [b.sha256])
    assert "earlier" not in summarize_code([session(a, 1), session(a, 2)])
    assert summarize_code([session(None, 1), session(a, 2)])["earlier"] == [None]


# -- stores ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def config():
    return resolve("fedper", "st_mt_1")


def test_a_fresh_run_clears_the_folder_that_it_takes(tmp_path, config):
    base = tmp_path / config.folder()
    write(base, OLD)
    write(own(base, NEW), NEW)
    with RunStore(tmp_path, config, NEW).opened(fresh=True) as store:
        assert store.folder == own(base, NEW)
    assert (base / "summary.json").exists() and not (own(base, NEW) / "summary.json").exists()


def test_other_code_that_began_in_between_keeps_the_folder(tmp_path, config):
    """Both found the place empty; the first to open it has it, and the second goes to a folder of its own."""
    first, second = (RunStore(tmp_path, config, code) for code in (OLD, NEW))
    assert first.folder == second.folder
    with first.opened():
        write(first.folder, OLD, finished=False)
        with second.opened():
            assert second.folder == own(first.folder, NEW) and second.chosen.change == "method: fedper.py changed"
    alike = RunStore(tmp_path, config, OLD)
    with pytest.raises(StoreError, match="another process is working"), first.opened(), alike.opened():
        pass


def _open(out, config, code, barrier, told):
    store = RunStore(out, config, code)
    barrier.wait(30)
    for _ in range(200):
        try:
            with store.opened():
                write(store.folder, code, finished=False)
                time.sleep(0.2)
                told.put((code.sha256, str(store.folder), store.files.manifest()["sessions"][0]["code"]["sha256"]))
                return
        except StoreError:  # the other one is there and has not yet written whose it is
            time.sleep(0.05)
    told.put(None)


def test_processes_of_two_codes_at_once_never_share_a_folder(tmp_path, config):
    context = multiprocessing.get_context("fork")
    barrier, told = context.Barrier(4), context.Queue()
    codes = [OLD, NEW, OLD, NEW]
    workers = [context.Process(target=_open, args=(tmp_path, config, code, barrier, told)) for code in codes]
    for worker in workers:
        worker.start()
    answers = [told.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(30)
    assert None not in answers and all(mine == written for mine, _, written in answers)
    folders = {}
    for sha256, folder, _ in answers:
        folders.setdefault(sha256, set()).add(folder)
    assert all(len(places) == 1 for places in folders.values())
    assert len(set.union(*folders.values())) == 2


def test_a_store_can_look_again(tmp_path, config):
    store = RunStore(tmp_path, config, NEW)
    base = store.folder
    write(base, OLD)
    store.choose_folder()
    assert store.folder == own(base, NEW) and store.files.path == store.folder
    assert store.checkpoints.parent == store.folder


def test_seeds_have_folders_of_their_own(tmp_path, config):
    other = dataclasses.replace(config, seed=1)
    assert RunStore(tmp_path, other, NEW).folder != RunStore(tmp_path, config, NEW).folder
