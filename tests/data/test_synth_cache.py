"""The cache of rendered samples: whole or absent, checked, and never the reason for a crash."""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

from fmtlbench.base import jit
from fmtlbench.base.cache_folder import cache_root
from fmtlbench.base.errors import UsageError
from fmtlbench.data.datasets.synth import VERSION, SynthDataset, cache, dataset, generate

LENGTH = 20  # more than one chunk
SIZE = (16, 24)


def make(folder, **changes):
    arguments = {"name": "synth-pascal", "split": "train", "length": LENGTH, "size": SIZE, **changes}
    return SynthDataset(**arguments, cache_dir=folder)


@pytest.fixture(autouse=True)
def no_surprises():
    """A warning that a test does not expect is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def assert_right(data):
    for index in (0, 11, LENGTH - 1):
        fresh, item = generate(data.name, data.split, index, data.size), data[index]
        assert fresh.keys() == item.keys()
        assert all(np.array_equal(fresh[key], item[key]) for key in fresh)


def forbid_rendering(monkeypatch):
    def fail(self):
        raise AssertionError("rendered although the cache has it")

    monkeypatch.setattr(SynthDataset, "_render", fail)


def test_second_open_reads_the_same_from_disk(tmp_path, monkeypatch):
    calls = []
    first = make(tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(16, 20), (20, 20)]
    assert first.folder.name == f"synth-pascal-train-16x24-20-v{VERSION}"
    forbid_rendering(monkeypatch)
    second = make(tmp_path)
    assert second.cached and second.fingerprint == first.fingerprint
    assert all(isinstance(second.arrays(key), np.memmap) for key in second.keys)
    assert second.verify()
    assert_right(second)


def test_what_it_says_of_itself(tmp_path):
    data = make(tmp_path)
    assert (data.name, data.split, data.size, len(data)) == ("synth-pascal", "train", SIZE, LENGTH)
    assert data.tasks == ("semseg", "human_parts", "sal", "normals", "edge")
    assert data.classes == {"semseg": 8, "human_parts": 7}
    assert sum(1 for _ in data) == LENGTH  # iteration ends


def test_a_dataset_of_some_keys_lies_beside_the_whole_one(tmp_path, monkeypatch):
    whole, some = make(tmp_path), make(tmp_path, keys=("semseg", "image"))
    assert some.keys == ("image", "semseg") and some.folder.name == f"{whole.folder.name}-image-semseg"
    assert {p.name for p in some.folder.iterdir()} == {"index.json", "image.npy", "semseg.npy"}
    assert tuple(some[3]) == some.keys and np.array_equal(some[3]["semseg"], whole[3]["semseg"])
    assert some.cached and some.verify()
    forbid_rendering(monkeypatch)
    assert pickle.loads(pickle.dumps(some)).fingerprint == some.fingerprint != whole.fingerprint
    assert make(tmp_path, keys=whole.keys).folder == whole.folder
    with pytest.raises(UsageError, match="no key 'edge'; valid: image, semseg"):
        some.arrays("edge")


def test_fingerprint_tells_different_data_apart(tmp_path):
    variants = [{}, {"split": "test"}, {"length": 19}, {"size": (16, 25)}, {"name": "synth-nyud"}]
    assert len({make(tmp_path, **change).fingerprint for change in variants}) == len(variants)


def test_batch_is_the_stacked_items_of_the_asked_keys(tmp_path):
    data = make(tmp_path)
    indices = np.array([7, 0, 19, 7])
    whole = data.batch(indices)
    assert tuple(whole) == ("image", *data.tasks)
    for key, value in whole.items():
        assert type(value) is np.ndarray
        assert np.array_equal(value, np.stack([data[i][key] for i in indices]))
    data._arrays = {"sal": data.arrays("sal")}  # whoever touches another key fails
    few = data.batch(indices, keys=("sal",))
    assert few.keys() == {"sal"} and np.array_equal(few["sal"], whole["sal"])


def test_items_are_copies_and_arrays_are_read_only(tmp_path):
    data = make(tmp_path)
    data[0]["image"][:] = 0
    data.batch([0])["image"][:] = 0
    with pytest.raises(ValueError, match="read-only"):
        data.arrays("image")[0] = 0
    assert_right(data)


def test_folder_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("FMTLBENCH_CACHE", str(tmp_path / "deep" / "er"))
    assert make(None).folder.parent == tmp_path / "deep" / "er"
    assert make(tmp_path).folder.parent == tmp_path
    monkeypatch.delenv("FMTLBENCH_CACHE")
    assert "fmtlbench" in str(cache_root())


def test_pickled_dataset_carries_no_pixels(tmp_path, monkeypatch):
    data = make(tmp_path, progress=lambda done, total: None)
    packed = pickle.dumps(data)
    assert len(packed) < 1000
    forbid_rendering(monkeypatch)
    assert pickle.loads(packed).fingerprint == data.fingerprint


def child(code, folder):
    code = "import os, sys\nfrom fmtlbench.data.datasets.synth import SynthDataset\n" + code
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, stdin=subprocess.PIPE)


def test_killed_build_leaves_nothing_taken_for_whole(tmp_path):
    process = child(
        "kill = lambda done, total: os.kill(os.getpid(), 9)\n"
        f"SynthDataset('synth-pascal', 'train', {LENGTH}, {SIZE}, sys.argv[1], kill)",
        tmp_path,
    )
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    left = list(tmp_path.iterdir())
    assert len(left) == 1 and left[0].name.endswith(".tmp")  # it really was in the middle
    data = make(tmp_path)
    assert data.cached
    assert_right(data)


def test_leftovers_of_killed_builds_are_removed_when_old(tmp_path):
    name = f"synth-pascal-train-16x24-20-v{VERSION}"
    for other in (f".{name}.abc.tmp", ".synth-nyud-other.abc.tmp"):
        (tmp_path / other).mkdir()
        os.utime(tmp_path / other, (0, 0))
    (tmp_path / f".{name}.def.tmp").mkdir()  # somebody is at it
    make(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {name, f".{name}.def.tmp", ".synth-nyud-other.abc.tmp"}


def test_interrupt_cleans_up(tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, progress=stop)
    assert list(tmp_path.iterdir()) == []


def truncate(folder):
    path = folder / "normals.npy"
    path.write_bytes(path.read_bytes()[:-1])


def append(folder):
    with (folder / "edge.npy").open("ab") as file:
        file.write(b"more")


def wrong_header(folder):
    path = folder / "sal.npy"
    path.write_bytes(path.read_bytes().replace(b"(20, 16, 24)", b"(20, 24, 16)"))


def lose_file(folder):
    (folder / "image.npy").unlink()


def lose_index(folder):
    (folder / "index.json").unlink()


def garble_index(folder):
    (folder / "index.json").write_text('{"arrays": 3')


def foreign_index(folder):
    index = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**index, "version": VERSION + 1}))


@pytest.mark.parametrize("damage", [truncate, append, wrong_header, lose_file, lose_index, garble_index, foreign_index])
def test_damage_seen_at_open_is_repaired_with_a_warning(tmp_path, damage, monkeypatch):
    before = make(tmp_path)
    damage(before.folder)
    with pytest.warns(UserWarning, match="rendering again"):
        data = make(tmp_path)
    assert data.fingerprint == before.fingerprint
    assert_right(data)
    assert [path.name for path in tmp_path.iterdir()] == [data.folder.name]
    forbid_rendering(monkeypatch)
    make(tmp_path)


def test_a_flipped_bit_is_found_by_verify(tmp_path):
    path = make(tmp_path).folder / "semseg.npy"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    data = make(tmp_path)  # sizes and headers are right
    with pytest.warns(UserWarning, match="semseg damaged"):
        assert not data.verify()
    assert_right(data)
    assert data.verify() and make(tmp_path).verify()


def test_two_processes_at_once(tmp_path):
    code = (
        "sys.stdin.readline()\n"
        f"data = SynthDataset('synth-pascal', 'train', {LENGTH}, {SIZE}, sys.argv[1])\n"
        "print(data.cached, data.verify(), data.fingerprint)"
    )
    pair = [child(code, tmp_path) for _ in range(2)]
    for process in pair:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0].decode().split() for process in pair]
    assert said[0] == said[1] == ["True", "True", make(tmp_path).fingerprint]
    assert len(list(tmp_path.iterdir())) == 1


def test_the_slower_builder_uses_what_the_faster_one_left(tmp_path):
    inodes = []

    def overtake(done, total):
        if not inodes:
            inodes.append((make(tmp_path).folder / "image.npy").stat().st_ino)

    data = make(tmp_path, progress=overtake)
    assert (data.folder / "image.npy").stat().st_ino == inodes[0]
    assert [path.name for path in tmp_path.iterdir()] == [data.folder.name]
    assert_right(data)


def test_unwritable_folder_falls_back_to_memory(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(UserWarning, match="keeping the data in memory") as caught:
        data = make(tmp_path / "file")
    assert len(caught) == 1 and "\n" not in str(caught[0].message)
    assert not data.cached and data.verify()
    assert_right(data)
    assert data.fingerprint == make(tmp_path).fingerprint
    with pytest.raises(ValueError, match="read-only"):
        data.arrays("image")[0] = 0


def test_full_disk_falls_back_to_memory_and_leaves_nothing(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache.os, "fsync", full)
    with pytest.warns(UserWarning, match="No space left"):
        data = make(tmp_path)
    assert not data.cached and list(tmp_path.iterdir()) == []
    assert_right(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "synth-pascl"}, "did you mean 'synth-pascal'"),
        ({"split": "trian"}, "did you mean 'train'"),
        ({"split": "pretrian"}, "did you mean 'pretrain'"),
        ({"keys": ("image", "depth")}, "no key 'depth'"),
        ({"length": 0}, "length must be at least 1, got 0"),
        ({"length": 2.0}, "whole number"),
        ({"length": True}, "whole number"),
        ({"size": (8, 64)}, "at least 16x16"),
        ({"size": ("64", "64")}, "two whole numbers"),
    ],
)
def test_bad_requests_write_nothing(tmp_path, change, message):
    with pytest.raises(UsageError, match=message):
        make(tmp_path, **change)
    assert list(tmp_path.iterdir()) == []


def test_bad_indices_and_keys(tmp_path):
    data = make(tmp_path)
    for index in (-1, LENGTH):
        with pytest.raises(IndexError, match=f"no sample {index}, valid: 0 to 19"):
            data[index]
        with pytest.raises(UsageError, match="valid: 0 to 19"):
            data.batch(np.array([0, index]))
    for index in (1.0, True, "1"):
        with pytest.raises(UsageError, match="integers"):
            data[index]
    with pytest.raises(UsageError, match="'semseg'"):
        data.arrays("semsge")
    with pytest.raises(UsageError, match="depth"):  # a task of the other domain
        data.batch([0], keys=("depth",))
    assert data.batch(np.array([], dtype=int), keys=("sal",))["sal"].shape == (0, *SIZE)


def test_chunks_do_not_show(tmp_path, monkeypatch):
    one = make(tmp_path / "a")
    monkeypatch.setattr(dataset, "CHUNK", 3)
    assert make(tmp_path / "b").fingerprint == one.fingerprint


def test_compiled_code_that_cannot_be_stored_still_runs(monkeypatch):
    def njit(cache=False, **options):
        def fail(*arguments):
            raise OSError(errno.ENOSPC, "No space left on device")

        return lambda function: fail if cache else function

    monkeypatch.setattr(jit.numba, "njit", njit)
    assert jit.entry(lambda x: x + 1)(2) == 3

    def nowhere(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(jit.numba, "njit", nowhere)
    assert jit.entry(lambda x: x + 1)(2) == 3
