"""The decoded cache: bit for bit what the reader gave, resumed, shared, checked, and never half a file."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from fake_real import TASKS, FakeReal, position_sample

from fmtlbench.base.cache_folder import BrokenCacheError
from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.data import cache, cache_part
from fmtlbench.data.batches import train_batches
from fmtlbench.data.cache import CachedDataset, build_cache, cache_folder, open_cached
from fmtlbench.data.views import View

COUNT = 9
PARTS = 3
KEYS = ("image", *TASKS)
FILES = sorted(f"{'edge-training' if key == 'edge' else key}-{n:05d}.bin" for key in KEYS for n in range(PARTS))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Several parts of a few samples; a warning that a test does not expect is a failure."""
    monkeypatch.setattr(cache, "SAMPLES", 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def assert_same(data, source=None):
    source = source or FakeReal(COUNT)
    for index in range(len(source)):
        mine, theirs = data.sample(index), source.sample(index)
        assert mine.keys() == theirs.keys()
        for key, value in theirs.items():
            assert mine[key].dtype == value.dtype and mine[key].shape == value.shape
            assert mine[key].tobytes() == value.tobytes(), (index, key)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_cached_dataset_is_the_reader_bit_for_bit(tmp_path):
    source = FakeReal(COUNT)
    assert open_cached(source, tmp_path) is None
    calls = []
    folder = build_cache(source, tmp_path, lambda done, total: calls.append((done, total)))
    total = COUNT * len(KEYS)
    assert len(calls) == len(FILES) and calls[-1] == (total, total) and sorted(calls) == calls
    data = open_cached(source, tmp_path)
    source.reads.clear()
    assert_same(data)
    assert source.reads == []
    assert names(folder) == FILES and data.cached_keys == KEYS
    assert (len(data), data.size, data.ids, data.tasks) == (COUNT, source.size, source.ids, TASKS)
    assert data.fingerprint == source.fingerprint and data.image_id(3) == source.image_id(3)


def test_training_batches_from_the_cache_are_those_from_the_archive(tmp_path):
    source = FakeReal(COUNT)
    build_cache(source, tmp_path)
    for workers in (0, 1):
        mine, theirs = (
            list(
                train_batches(
                    View(data, np.arange(COUNT)), TASKS, 4, np.random.default_rng(2), ("scale", "crop", "flip"),
                    cpu(), workers,
                )
            )
            for data in (open_cached(source, tmp_path), source)
        )  # fmt: skip
        assert all((a[key] == b[key]).all() for a, b in zip(mine, theirs, strict=True) for key in a)


def cpu():
    import torch

    return torch.device("cpu")


def test_only_asked_keys_are_read_and_nothing_can_be_written(tmp_path):
    build_cache(FakeReal(COUNT), tmp_path)
    data = open_cached(FakeReal(COUNT), tmp_path)
    assert tuple(data.sample(5, ("depth", "image"))) == ("depth", "image")
    with pytest.raises(ValueError, match="read-only"):
        data.sample(5)["image"][0] = 0
    with pytest.raises(UsageError, match="valid: 0 to 8"):
        data.sample(COUNT)
    with pytest.raises(UsageError, match="valid: 0 to 8"):
        data.sample(-1)
    with pytest.raises(KeyError):  # what the reader says, here the fake one
        data.sample(0, ("sall",))


def test_pickled_it_carries_no_pixels(tmp_path):
    build_cache(FakeReal(COUNT), tmp_path)
    packed = pickle.dumps(open_cached(FakeReal(COUNT), tmp_path))
    assert len(packed) < 2000
    assert_same(pickle.loads(packed))


@pytest.mark.parametrize(
    ("array", "bytes_per_number"),
    [
        (position_sample(40, 50)["normals"], 1),  # 8-bit codes behind them
        (np.float32([[0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45] * 50]), 1),
        (np.arange(3000, dtype=np.float32).reshape(60, 50), 2),
        (np.arange(70000, dtype=np.float32).reshape(700, 100), 4),  # too many different values
        (np.full((3, 5), np.uint8(255)), 1),
        (np.arange(24, dtype=np.uint16).reshape(4, 6)[:, ::2], 2),
        (np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)), 1),
    ],
)
def test_numbers_are_stored_compactly_and_exactly(tmp_path, array, bytes_per_number):
    cache_part.write_part(tmp_path / "part", {}, ["a"], [{"x": array}])
    part = cache_part.Part(tmp_path / "part", {}, ["a"])
    part.verify()
    again = part.read(0, "x")
    assert again.dtype == array.dtype and again.tobytes() == array.tobytes()
    stored = part._samples[0]["x"]
    assert np.dtype(stored["dtype"]).itemsize == bytes_per_number


@pytest.mark.parametrize(
    "subset", [{"tasks": ("depth",)}, {"count": 5}, {"count": 3, "tasks": ("sal", "edge")}, {"tasks": ()}, {"count": 8}]
)
def test_fewer_tasks_or_images_are_found_in_the_cache_of_all(tmp_path, subset):
    build_cache(FakeReal(COUNT), tmp_path)
    source = FakeReal(**{"count": COUNT, **subset})
    data = open_cached(source, tmp_path)
    assert_same(data, FakeReal(**{"count": COUNT, **subset}))
    assert source.reads == [] and data.cached_keys == ("image", *source.tasks)
    build_cache(source, tmp_path)  # nothing is missing
    assert source.reads == []


def test_more_tasks_than_are_cached_come_from_the_archive(tmp_path):
    build_cache(FakeReal(COUNT, tasks=("depth", "sal")), tmp_path)
    source = FakeReal(COUNT)
    data = open_cached(source, tmp_path)
    assert data.cached_keys == ("image", "sal", "depth")
    data.sample(3, ("depth", "image"))
    assert source.reads == []
    assert_same(data)
    source.reads.clear()
    build_cache(source, tmp_path)
    assert len(source.reads) == COUNT * (len(KEYS) - 3)
    assert open_cached(source, tmp_path).cached_keys == KEYS


def test_a_cache_of_fewer_images_is_completed(tmp_path):
    build_cache(FakeReal(6), tmp_path)  # one whole part, and two of four
    source = FakeReal(COUNT)
    assert open_cached(source, tmp_path) is None
    build_cache(source, tmp_path)
    assert set(source.reads) == set(range(4, COUNT))
    assert_same(open_cached(source, tmp_path))
    assert_same(open_cached(FakeReal(6), tmp_path), FakeReal(6))


def test_both_kinds_of_edges_have_their_place(tmp_path):
    build_cache(FakeReal(COUNT), tmp_path)
    scoring = FakeReal(COUNT, purpose="scoring")
    assert "edge" not in open_cached(scoring, tmp_path).cached_keys
    build_cache(scoring, tmp_path)
    assert open_cached(scoring, tmp_path).cached_keys == open_cached(FakeReal(COUNT), tmp_path).cached_keys == KEYS


def test_files_that_have_changed_are_not_taken_from_the_cache(tmp_path):
    build_cache(FakeReal(COUNT), tmp_path)
    source = FakeReal(COUNT, changed=((5, "depth"),))
    with pytest.warns(UserWarning, match=r"depth-00001\.bin: made of other files.* reading depth from the archive"):
        data = open_cached(source, tmp_path)
    assert "depth" not in data.cached_keys and len(data.cached_keys) == len(KEYS) - 1
    assert_same(data)
    assert_same(open_cached(FakeReal(5, changed=((5, "depth"),)), tmp_path), FakeReal(5))  # does not use that one
    source.reads.clear()
    with pytest.warns(UserWarning, match="decoding it again"):
        build_cache(source, tmp_path)
    assert source.reads == [4, 5, 6, 7]


def test_another_archive_has_another_folder(tmp_path):
    other = FakeReal(COUNT)
    other.lineage = "f" * 64
    build_cache(FakeReal(COUNT), tmp_path)
    assert open_cached(other, tmp_path) is None


# -- interrupted, full, shared -----------------------------------------------------------------------------------------


def test_an_interrupted_build_goes_on_where_it_stopped(tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    source = FakeReal(COUNT)
    with pytest.raises(KeyboardInterrupt):
        build_cache(source, tmp_path, stop)
    folder = cache_folder(source, tmp_path)
    (first,) = names(folder)  # one part, and no temporary file
    assert open_cached(source, tmp_path) is None
    made, inode = len(source.reads), (folder / first).stat().st_ino
    source.reads.clear()
    build_cache(source, tmp_path)
    assert 1 <= made <= 4 and made + len(source.reads) == COUNT * len(KEYS)
    assert (folder / first).stat().st_ino == inode
    assert_same(open_cached(source, tmp_path))


CHILD = """
import os, sys
sys.path.insert(0, sys.argv[2])
from fake_real import FakeReal
from fmtlbench.data import cache
cache.SAMPLES = 4
{code}
cache.build_cache(Source({count}), sys.argv[1])
"""


def child(folder, code):
    script = CHILD.format(code=code, count=COUNT)
    arguments = [sys.executable, "-c", script, str(folder), str(Path(__file__).parents[1])]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE)


def test_a_killed_build_leaves_whole_parts_only(tmp_path):
    code = (
        "class Source(FakeReal):\n"
        "    def sample(self, index, keys=None):\n"
        "        os.kill(os.getpid(), 9) if len(self.reads) == 6 else None\n"
        "        return super().sample(index, keys)\n"
    )
    process = child(tmp_path, code)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    folder = cache_folder(FakeReal(COUNT), tmp_path)
    left = names(folder)
    assert len(left) > 1 and left[0].endswith(".tmp")  # it really was in the middle, after some part
    os.utime(folder / left[0], (0, time.time() - 2 * 24 * 3600))
    build_cache(FakeReal(COUNT), tmp_path)
    assert names(folder) == FILES
    assert_same(open_cached(FakeReal(COUNT), tmp_path))


def test_two_builds_at_once(tmp_path):
    code = (
        "import time\n"
        "class Source(FakeReal):\n"
        "    def sample(self, index, keys=None):\n"
        "        time.sleep(0.004)\n"
        "        return super().sample(index, keys)\n"
    )
    pair = [child(tmp_path, code) for _ in range(2)]
    said = [process.communicate(timeout=60)[1] for process in pair]
    assert [process.returncode for process in pair] == [0, 0] and said == [b"", b""]
    assert names(cache_folder(FakeReal(COUNT), tmp_path)) == FILES
    assert_same(open_cached(FakeReal(COUNT), tmp_path))


def test_a_part_that_another_build_finished_meanwhile_is_taken(tmp_path):
    source, other = FakeReal(COUNT), FakeReal(COUNT)
    build_cache(source, tmp_path, lambda done, total: build_cache(other, tmp_path))
    assert len(source.reads) <= 4 and len(source.reads) + len(other.reads) == COUNT * len(KEYS)


def test_a_full_disk_leaves_nothing_half_valid(tmp_path, monkeypatch):
    source = FakeReal(COUNT)

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FmtlbenchError, match=r"No space left on device.*goes on") as caught:
            build_cache(source, tmp_path)
    assert "\n" not in str(caught.value)
    assert names(cache_folder(source, tmp_path)) == [] and open_cached(source, tmp_path) is None
    build_cache(source, tmp_path)
    assert_same(open_cached(source, tmp_path))


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FmtlbenchError, match="cannot write"):
        build_cache(FakeReal(COUNT), tmp_path / "file")


def test_a_damaged_archive_stops_the_build_and_keeps_what_was_good(tmp_path):
    with pytest.raises(FmtlbenchError, match=r"0008\.png: cannot be decoded"):
        build_cache(FakeReal(COUNT, damaged=(8,)), tmp_path)
    assert not [name for name in names(cache_folder(FakeReal(COUNT), tmp_path)) if name.endswith("2.bin")]


# -- damage ------------------------------------------------------------------------------------------------------------


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
    path.write_bytes(b"")


def append(path):
    path.write_bytes(path.read_bytes() + b"more")


def garble_index(path):
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


def another_part(path):
    path.write_bytes((path.parent / "depth-00000.bin").read_bytes())


@pytest.mark.parametrize("damage", [cut, cut_in_half, empty, append, garble_index, another_part])
def test_damage_seen_at_open_is_named_and_repaired_by_building(tmp_path, damage):
    source = FakeReal(COUNT)
    path = build_cache(source, tmp_path) / "depth-00001.bin"
    damage(path)
    with pytest.warns(UserWarning, match=r"depth-00001\.bin: .*`fmtlbench data cache nyud` repairs it") as caught:
        data = open_cached(source, tmp_path)
    assert len(caught) == 1 and data.cached_keys == tuple(key for key in KEYS if key != "depth")
    assert_same(data)
    source.reads.clear()
    with pytest.warns(UserWarning, match=r"depth-00001\.bin: .*decoding it again"):
        build_cache(source, tmp_path)
    assert source.reads == [4, 5, 6, 7]
    assert_same(open_cached(source, tmp_path))


def test_a_lost_part_makes_its_key_incomplete(tmp_path):
    source = FakeReal(COUNT)
    (build_cache(source, tmp_path) / "sal-00002.bin").unlink()
    assert "sal" not in open_cached(source, tmp_path).cached_keys
    assert "sal" in open_cached(FakeReal(8), tmp_path).cached_keys  # who does not need it has all


@pytest.mark.parametrize(("key", "where"), [("image", ()), ("normals", ("table",))])
def test_a_flipped_bit_is_noticed_when_read_and_the_archive_is_read_instead(tmp_path, key, where):
    source = FakeReal(COUNT)
    path = build_cache(source, tmp_path) / f"{key}-00001.bin"
    whole = path.read_bytes()
    description = cache._describe_part(source.provenance(key), 1)
    stored = cache_part.Part(path, *description)._samples[2][key]
    for name in where:
        stored = stored[name]
    content = bytearray(whole)
    content[stored["at"] + 5] ^= 4
    path.write_bytes(content)
    data = CachedDataset(source, path.parent)
    with pytest.warns(UserWarning, match=rf"{key}-00001\.bin: damaged .*reading 0006 from the archive instead"):
        assert_same(data)
    with pytest.raises(BrokenCacheError, match="damaged"):
        cache_part.Part(path, *description).verify()
    with pytest.warns(UserWarning, match="decoding it again"):
        build_cache(source, tmp_path)
    assert path.read_bytes() == whole
    assert_same(open_cached(source, tmp_path))


def test_the_real_samples_bit_for_bit(tmp_path):
    root = Path(__file__).parents[3] / "shared" / "mini"
    if not root.is_dir():
        pytest.skip("the real samples are not beside this checkout")
    from archives import open_real

    for domain in ("nyud", "pascal"):
        source = open_real(domain, "train", root, (64, 64))
        build_cache(source, tmp_path)
        assert_same(open_cached(source, tmp_path), source)
