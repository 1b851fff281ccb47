"""`fmtlbench score` on small archives written in the public layouts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.cli import build_parser
from fmtlbench.metrics import MaxF, MeanAngle, OdsF

IDS = ("0007", "0012", "1301")
SIZE = (40, 52)


def run(*argv) -> int:
    args = build_parser(["score"]).parse_args(["score", *map(str, argv)])
    return args.func(args)


def png(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def npy(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


def normals(rng) -> np.ndarray:
    vectors = rng.normal(size=(*SIZE, 3))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return ((vectors + 1) * 127.5).astype(np.uint8)


@pytest.fixture
def nyud(tmp_path):
    """(archive, predictions): one training image more in the archive than in the val list; depth off by 2 m."""
    rng = np.random.default_rng(0)
    root, pred = tmp_path / "NYUDv2", tmp_path / "out"
    for i in (*IDS, "0001"):
        edge = np.zeros(SIZE, np.uint8)
        edge[8 + len(i) : 30, 12] = 255
        png(root / "edge" / f"{i}.png", edge)
        segmentation = rng.integers(0, 41, SIZE, dtype=np.uint8)
        png(root / "segmentation" / f"{i}.png", segmentation)
        vectors = normals(rng)
        vectors[:5] = 127  # no normal here
        png(root / "normals" / f"{i}.png", vectors)
        depth = rng.uniform(1, 5, SIZE).astype(np.float32)
        npy(root / "depth" / f"{i}.npy", depth)
        if i in IDS:
            png(pred / "edge" / f"{i}.png", edge)
            png(pred / "semseg" / f"{i}.png", np.maximum(segmentation, 1) - 1)
            png(pred / "normals" / f"{i}.png", vectors)
            npy(pred / "depth" / f"{i}.npy", depth + 2)
            png(pred / "depth" / f"{i}.png", np.zeros((*SIZE, 3), np.uint8))  # the colour picture beside it
    (root / "gt_sets").mkdir()
    (root / "gt_sets" / "val.txt").write_text("\r\n".join(IDS) + "\r\n")
    return root, pred


def score(capsys, *argv) -> dict:
    assert run(*argv, "--json") == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("task", "value", "options"),
    [("edge", 100, ("--no-nms", "--edge-gt", "plain")), ("semseg", 100, ()), ("normals", 0, ()), ("depth", 2, ())],
)
def test_nyud_archive(nyud, capsys, task, value, options):
    root, pred = nyud
    record = score(capsys, "--task", task, "--dataset", "nyud", "--pred", pred, "--gt", root, *options)
    assert record["value"] == pytest.approx(value, abs=1e-5)
    assert record["images"] == 3
    assert record["metric"] == {"edge": "odsF", "semseg": "mIoU", "normals": "mErr", "depth": "RMSE"}[task]


def test_folder_of_one_task_and_ids_from_a_file(nyud, capsys, tmp_path):
    root, pred = nyud
    (tmp_path / "two.txt").write_text("0007\n1301\n")
    (pred / "depth" / "0012.npy").unlink()
    options = ("--dataset", "nyud", "--pred", pred / "depth", "--gt", root / "depth", "--ids", tmp_path / "two.txt")
    assert score(capsys, "--task", "depth", *options)["images"] == 2


def test_edge_folder_gives_what_the_stream_gives_for_any_number_of_jobs(capsys, tmp_path):
    rng = np.random.default_rng(3)
    meter = OdsF(max_dist=0.0075, gt="labelmap")
    for i in IDS:
        strength = rng.integers(0, 256, SIZE, dtype=np.uint8)
        segments = np.kron(rng.integers(1, 9, (4, 4)), np.ones((10, 13), int)).astype(np.uint16)
        png(tmp_path / "out" / f"{i}.png", strength)
        (tmp_path / "gt").mkdir(exist_ok=True)
        savemat(tmp_path / "gt" / f"{i}.mat", {"LabelMap": segments})
        meter.update(strength[None] / np.float32(255), segments[None].astype(np.int32))
    for jobs in (1, 2):
        record = score(capsys, "--task", "edge", "--dataset", "pascal", "--pred", tmp_path / "out",
                       "--gt", tmp_path / "gt", "--jobs", jobs)  # fmt: skip
        assert record["value"] == meter.compute().value > 0
        # the reader draws the edges of the label maps, which thinning leaves as they are
        assert record["options"]["gt"] == "plain" and record["options"]["max_dist"] == 0.0075


def test_pascal_saliency_and_normals(capsys, tmp_path):
    rng = np.random.default_rng(4)
    root, pred = tmp_path / "PASCALContext", tmp_path / "out"
    maxf, merr = MaxF(), MeanAngle()
    (root / "pascal-context" / "trainval").mkdir(parents=True)
    (root / "ImageSets" / "Context").mkdir(parents=True)
    (root / "ImageSets" / "Context" / "val.txt").write_text("\n".join(IDS))
    (root / "json").mkdir()
    (root / "json" / "nyu_classes.json").write_text(json.dumps({"wall": 1, "bed": 2, "unknown": 3}))
    context = {"sky": 5, "wall": 7, "tvmonitor": 9, "unknown": 11}
    (root / "json" / "context_classes.json").write_text(json.dumps(context))
    for i in IDS:
        guess, soft = rng.integers(0, 256, (2, *SIZE), dtype=np.uint8)
        png(pred / "sal" / f"{i}.png", guess)
        png(root / "sal_distill" / f"{i}.png", soft)
        maxf.update(guess[None] / np.float32(255), (soft > 127)[None])
        vectors, truth = normals(rng), normals(rng)
        png(pred / "normals" / f"{i}.png", vectors)
        png(root / "normals_distill" / f"{i}.png", truth)
        segments = rng.choice([5, 7, 9, 11], SIZE).astype(np.uint16)
        savemat(root / "pascal-context" / "trainval" / f"{i}.mat", {"LabelMap": segments})
        decoded = np.where(np.isin(segments, (7, 9))[None], np.moveaxis(truth, 2, 0) / 127.5 - 1, 0.0)
        merr.update(np.moveaxis(vectors, 2, 0)[None] / 127.5 - 1, decoded[None])
    options = ("--dataset", "pascal", "--pred", pred, "--gt", root)
    assert score(capsys, "--task", "sal", *options)["value"] == pytest.approx(maxf.compute().value)
    assert score(capsys, "--task", "normals", *options)["value"] == pytest.approx(merr.compute().value)


def test_plain_layout_with_npy(capsys, tmp_path):
    labels = np.array([[0, 1, 2, 255], [0, 1, 2, 2]])
    npy(tmp_path / "gt" / "a.npy", labels)
    npy(tmp_path / "out" / "a.npy", np.array([[0, 1, 2, 0], [0, 1, 2, 1]]))
    options = ("--task", "human_parts", "--dataset", "plain", "--pred", tmp_path / "out", "--gt", tmp_path / "gt")
    record = score(capsys, *options, "--classes", 3)
    assert record["value"] == pytest.approx(100 * (1 + 2 / 3 + 2 / 3) / 3)
    assert score(capsys, *options, "--classes", 4, "--absent", "zero")["value"] == pytest.approx(100 * 7 / 12)
    with pytest.raises(UsageError, match="--classes"):
        run(*options)


def test_output_folder_and_table(nyud, capsys, tmp_path):
    root, pred = nyud
    assert run("--task", "edge", "--dataset", "nyud", "--pred", pred, "--gt", root, "-o", tmp_path / "o" / "p") == 0
    out = capsys.readouterr().out
    assert "odsF" in out and "oisF" in out and "3 images" in out
    rows = (tmp_path / "o" / "p" / "edge_pr.csv").read_text().splitlines()
    assert rows[0] == "threshold,precision,recall,F" and len(rows) == 100
    assert Image.open(tmp_path / "o" / "p" / "edge_pr.png").size[0] > 300
    assert json.loads((tmp_path / "o" / "p" / "edge.json").read_text())["metric"] == "odsF"


def damage_missing(root, pred):
    (pred / "edge" / "0012.png").unlink()
    return "missing prediction: 0012"


def damage_extra(root, pred):
    png(pred / "edge" / "9999.png", np.zeros(SIZE, np.uint8))
    return "extra prediction: "


def damage_label(root, pred):
    (root / "edge" / "1301.png").unlink()
    return "missing label: 1301"


def damage_size(root, pred):
    png(pred / "edge" / "0012.png", np.zeros((5, 6), np.uint8))
    return "0012.png: 5×6 pixels, but its label has 40×52"


def damage_truncated(root, pred):
    path = pred / "edge" / "0012.png"
    path.write_bytes(path.read_bytes()[:60])
    return "0012.png: cannot be read"


def damage_channels(root, pred):
    png(pred / "edge" / "0012.png", np.zeros((*SIZE, 3), np.uint8))
    return "0012.png: shape [40, 52, 3]"


def damage_values(root, pred):
    png(root / "edge" / "0012.png", np.full(SIZE, 3, np.uint8))
    return "0012.png: value 3, expected an edge map of 0 and 255"


def damage_range(root, pred):
    (pred / "edge" / "0012.png").unlink()
    npy(pred / "edge" / "0012.npy", np.full(SIZE, 7.5))
    return "0012.npy: odsF prediction: values from 7.5"


@pytest.mark.parametrize("damage", [v for k, v in sorted(globals().items()) if k.startswith("damage_")])
def test_bad_files_are_named_and_nothing_is_scored(nyud, capsys, damage):
    root, pred = nyud
    expected = damage(root, pred)
    with pytest.raises(FmtlbenchError, match="not scored: 1 file to put right"):
        run("--task", "edge", "--dataset", "nyud", "--pred", pred, "--gt", root)
    captured = capsys.readouterr()
    assert expected in captured.err and captured.out == ""


def test_class_ids_out_of_range_are_named(nyud, capsys):
    root, pred = nyud
    png(pred / "semseg" / "0012.png", np.full(SIZE, 40, np.uint8))
    with pytest.raises(FmtlbenchError, match="not scored"):
        run("--task", "semseg", "--dataset", "nyud", "--pred", pred, "--gt", root)
    assert "0012.png: mIoU prediction: values from 40 to 40, expected class ids 0 to 39" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--task", "edge", "--dataset", "nyu"), "did you mean 'nyud'"),
        (("--task", "sal", "--dataset", "nyud"), "nyud has no sal"),
        (("--task", "semseg", "--dataset", "nyud", "--classes", 10**12), "expected 2 to 255"),
        (("--task", "edge", "--dataset", "nyud", "--split", "test"), "test.txt"),
        (("--task", "edge", "--dataset", "nyud", "--gt", "nowhere"), "--gt: no such folder: nowhere"),
    ],
)
def test_usage_mistakes(nyud, options, message):
    root, pred = nyud
    with pytest.raises(UsageError, match=message):
        run("--pred", pred, "--gt", root, *options)


def test_options_of_the_metric(nyud, capsys):
    """A class in neither counts as 0 when asked to; the short flag and --option say the same."""
    root, pred = nyud
    for i in IDS:  # classes 0 and 1 of 40
        png(root / "segmentation" / f"{i}.png", np.full(SIZE, 1, np.uint8))
        png(pred / "semseg" / f"{i}.png", np.full(SIZE, 0, np.uint8))
    where = ("--task", "semseg", "--dataset", "nyud", "--pred", pred, "--gt", root)
    assert score(capsys, *where)["value"] == 100
    for flags in (("--option", "absent=zero"), ("--absent", "zero")):
        record = score(capsys, *where, *flags)
        assert record["value"] == pytest.approx(100 / 40) and record["options"]["absent"] == "zero"
    edges = ("--task", "edge", "--dataset", "nyud", "--pred", pred, "--gt", root)
    record = score(capsys, *edges, "--option", "nms=false", "--option", "gt=plain", "--option", "max_dist=0.02")
    assert record["value"] == pytest.approx(100)
    assert record["options"] == {"max_dist": 0.02, "nms": False, "gt": "plain", "thresholds": 99}


@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [
        ("semseg", ("--option", "absnt=zero"), "--option absnt=zero: absnt: unknown key.*did you mean 'absent'"),
        ("semseg", ("--option", "absent=zer"), "'zer', expected one of 'skip', 'zero'"),
        ("semseg", ("--option", "absent"), "--option absent: expected key=value, for example absent=zero"),
        ("semseg", ("--option", "num_classes=3"), "num_classes: the dataset decides it"),
        ("semseg", ("--option", "absent=zero", "--absent", "skip"), "--absent is given too"),
        ("edge", ("--option", "nms=false", "--no-nms"), "--no-nms is given too"),
        ("edge", ("--option", "gt=labelmap"), "boundary maps"),
        ("normals", ("--option", "zero=skp"), "expected one of 'skip', 'count'"),
    ],
)
def test_wrong_options_of_the_metric(nyud, task, flags, message):
    root, pred = nyud
    with pytest.raises(UsageError, match=message):
        run("--task", task, "--dataset", "nyud", "--pred", pred, "--gt", root, *flags)


def test_the_golden_vectors_as_files(golden, capsys, tmp_path):
    """`--option` gives the public meters' scores, FedHCA²'s and FMTL-Bench's."""

    def written(name, task, scale):
        file = golden(f"C_meters/{name}_set0.npz")
        images = [(p, g) for b in range(3) for p, g in zip(file[f"b{b}_pred"], file[f"b{b}_gt"])]
        for i, (p, g) in enumerate(images):
            npy(tmp_path / name / "pred" / task / f"{i}.npy", p / np.float32(scale) if scale > 1 else p)
            npy(tmp_path / name / "gt" / f"{i}.npy", g.astype(np.uint8))
        return (
            "--task",
            task,
            "--dataset",
            "plain",
            "--pred",
            tmp_path / name / "pred",
            "--gt",
            tmp_path / name / "gt",
        )

    ours, theirs = golden("C_meters/scores_fedhca2.json"), golden("C_meters/scores_fmtl.json")
    record = score(capsys, *written("semseg_pascalcontext", "semseg", 1), "--classes", "21", "--option", "absent=zero")
    assert record["value"] == pytest.approx(ours["semseg_pascalcontext_set0"]["mIoU"], abs=1e-6)
    sal = written("sal", "sal", 255)
    assert score(capsys, *sal)["value"] == pytest.approx(ours["sal_set0"]["maxF"], abs=1e-3)
    record = score(capsys, *sal, "--option", "scores=sigmoid_of_probability")
    assert record["value"] == pytest.approx(theirs["sal_set0"]["maxF"], abs=1e-3)


def test_an_id_listed_twice_is_refused(nyud):
    root, pred = nyud
    (root / "gt_sets" / "val.txt").write_text("0007\n0012\n0007\n")
    with pytest.raises(FmtlbenchError, match="line 3: 0007 is listed twice, first in line 1"):
        run("--task", "edge", "--dataset", "nyud", "--pred", pred, "--gt", root)


def doubtful(task, change):
    """A folder's worth of labels, and predictions that are the labels changed."""
    rng = np.random.default_rng(5)
    depth = rng.uniform(1, 5, SIZE).astype(np.float32)
    label = {"depth": depth, "normals": normals(rng) / 127.5 - 1}[task]
    return label.astype(np.float32), change(label)


@pytest.mark.parametrize(
    ("task", "change", "said"),
    [
        ("depth", lambda a: 1000 * a, "predictions are 1e+03 times their labels, as if they were in millimetres"),
        ("depth", lambda a: 100 * a, "as if they were in centimetres"),
        ("depth", lambda a: a / 1000, "as if the labels were in millimetres and the predictions in metres"),
        ("depth", lambda a: 0 * a, "predictions are 0 times their labels"),
        ("depth", lambda a: np.where(a > 4.5, -a, a), "values below 0 in 1 of 1 predictions"),
        ("normals", lambda a: (a + 1) * 127.5, "codes (n + 1) · 127.5 that were not decoded"),
        ("normals", lambda a: 0 * a, "nothing but vectors of length 0"),
    ],
)
def test_what_cannot_be_right_is_refused_unless_trusted(capsys, tmp_path, task, change, said):
    label, prediction = doubtful(task, change)
    npy(tmp_path / "gt" / "a.npy", label)
    npy(tmp_path / "out" / "a.npy", prediction)
    options = ("--task", task, "--dataset", "plain", "--pred", tmp_path / "out", "--gt", tmp_path / "gt")
    with pytest.raises(FmtlbenchError) as error:
        run(*options)
    assert said in str(error.value) and "--trust" in str(error.value)
    record = score(capsys, *options, "--trust")
    assert record["value"] > 0 and said in record["doubts"][0]
    npy(tmp_path / "out" / "a.npy", label)
    assert "doubts" not in score(capsys, *options)


@pytest.mark.parametrize(
    ("task", "array", "said"),
    [
        ("depth", np.ones(SIZE, np.complex64), "values of type complex64, expected numbers"),
        ("depth", np.full(SIZE, "1.5"), "values of type <U3, expected numbers"),
        ("sal", np.full(SIZE, b"1"), "values of type |S1, expected numbers"),
        ("normals", np.ones((*SIZE, 3), np.int64), "int64 values, expected floating-point vectors or uint8"),
        ("semseg", np.ones(SIZE), "float64 values, expected class numbers"),
        ("semseg", np.full(SIZE, 5), "values from 5 to 5, expected class ids 0 to 2"),
        ("sal", np.full(SIZE, 1.5), "expected probabilities in [0, 1]"),
        ("edge", np.full(SIZE, np.nan), "NaN or infinite"),
    ],
)
def test_arrays_of_another_kind_are_named(capsys, tmp_path, task, array, said):
    good = {"depth": np.ones(SIZE, np.float32), "normals": np.eye(3, dtype=np.float32)[np.zeros(SIZE, int)]}
    npy(tmp_path / "gt" / "a.npy", good.get(task, np.ones(SIZE, np.uint8)))
    npy(tmp_path / "out" / "a.npy", array)
    options = ("--task", task, "--dataset", "plain", "--pred", tmp_path / "out", "--gt", tmp_path / "gt")
    with pytest.raises(FmtlbenchError, match="1 file to put right"):
        run(*options, *(("--classes", 3) if task == "semseg" else ()))
    assert said in capsys.readouterr().err


def test_labels_of_which_nothing_is_known_and_constants(capsys, tmp_path):
    npy(tmp_path / "gt" / "a.npy", np.full(SIZE, 255, np.uint8))
    npy(tmp_path / "out" / "a.npy", np.full(SIZE, 0.5))
    options = ("--task", "sal", "--dataset", "plain", "--pred", tmp_path / "out", "--gt", tmp_path / "gt")
    with pytest.raises(FmtlbenchError, match="every pixel of every label is unlabelled"):
        run(*options)
    npy(tmp_path / "gt" / "a.npy", np.ones(SIZE, np.uint8))
    capsys.readouterr()
    assert run(*options, "--json") == 0
    captured = capsys.readouterr()
    assert "note: all predictions are one and the same constant" in captured.err
    assert json.loads(captured.out)["notes"] == ["all predictions are one and the same constant"]


def test_files_that_are_no_files_and_lists_that_are_no_lists(nyud, capsys, tmp_path):
    import os

    root, pred = nyud
    options = ("--task", "depth", "--dataset", "nyud", "--pred", pred, "--gt", root)
    (pred / "depth" / "0012.npy").unlink()
    os.mkfifo(pred / "depth" / "0012.npy")
    with pytest.raises(FmtlbenchError, match="1 file to put right"):
        run(*options)
    assert "0012.npy: cannot be read as .npy: not a regular file" in capsys.readouterr().err
    for content, said in ((b"\xff\xfe", "not a UTF-8 text file"), (b"\n", "lists no image"), (b"../up\n", "'../up'")):
        (tmp_path / "ids").write_bytes(content)
        with pytest.raises(FmtlbenchError, match=said):
            run(*options, "--ids", tmp_path / "ids")


def test_of_many_wrong_files_the_first_are_named(capsys, tmp_path):
    for i in range(30):
        npy(tmp_path / "gt" / f"{i}.npy", np.ones(SIZE, np.float32))
    (tmp_path / "out").mkdir()
    with pytest.raises(FmtlbenchError, match="30 files to put right, listed above"):
        run("--task", "depth", "--dataset", "plain", "--pred", tmp_path / "out", "--gt", tmp_path / "gt")
    assert len(capsys.readouterr().err.splitlines()) == 12
