"""Speed of the metrics, each as a ratio measured in one run: `python benchmarks/metrics.py [--pairs N]`.

Loops and baselines run on the same data, in the same process, on one thread, and are timed by the processor time they
take, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

import numpy as np
import torch
from scipy import ndimage
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.spatial import cKDTree
from skimage.morphology import thin

from fmtlbench.metrics import RMSE, MaxF, MeanAngle, MeanIoU
from fmtlbench.metrics.edges import curve, image
from fmtlbench.metrics.edges import sweeps as kernels
from fmtlbench.tasks import TASKS

BATCH = (8, 448, 576)
SHAPE = (425, 560)  # NYUD-v2 in the public archives
MAX_DIST = 0.011
PATIENCE = 10.0  # seconds for one baseline matching; some take minutes


def seconds(run: Callable[[], object], repeats: int = 7) -> float:
    run()  # warm up
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def verdict(name: str, ratio: float, least: float, detail: str) -> bool:
    print(f"{'ok  ' if ratio >= least else 'FAIL'} {name}: {ratio:.1f}x (must be >= {least:g}x)  {detail}")
    return ratio >= least


def labels(generator: torch.Generator) -> torch.Tensor:
    """Make class maps of a batch, a tenth of them not to be scored."""
    target = torch.randint(0, 40, BATCH, generator=generator)
    target[torch.rand(BATCH, generator=generator) < 0.1] = 255
    return target


def class_loop(prediction: torch.Tensor, target: torch.Tensor) -> list[int]:
    """Count as the public meter does: three masks per class, one class after the other."""
    valid = target != 255
    counts = []
    for c in range(40):
        p, g = prediction == c, target == c
        counts += [(p & g & valid).sum().item(), (p & ~g & valid).sum().item(), (~p & g & valid).sum().item()]
    return counts


def miou() -> bool:
    generator = torch.Generator().manual_seed(0)
    prediction, target = torch.randint(0, 40, BATCH, generator=generator), labels(generator)
    slow = seconds(lambda: class_loop(prediction, target), 3)
    fast = seconds(lambda: MeanIoU(num_classes=40).update(prediction, target))
    return verdict("mIoU 8x448x576, 40 classes", slow / fast, 20, f"loop {slow * 1e3:.0f} ms, ours {fast * 1e3:.1f} ms")


def semantic() -> bool:
    """Measure decoding and counting of classes, from the network's outputs on.

    The public code's labels are floating-point numbers with a channel axis.
    """
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(BATCH[0], 40, *BATCH[1:], generator=generator)
    target = labels(generator)
    floating = target.float().unsqueeze(1)
    decode = TASKS["semseg"].decode

    def public_decode() -> torch.Tensor:
        return outputs.permute(0, 2, 3, 1).max(3).indices  # a view with channels last; nothing is copied

    decoded = public_decode()
    assert torch.equal(decoded, decode(outputs))
    theirs = [seconds(public_decode, 3), seconds(lambda: class_loop(decoded, floating.squeeze()), 3)]
    ours = [seconds(lambda: decode(outputs)), seconds(lambda: MeanIoU(num_classes=40).update(decoded, target))]
    parts = [" + ".join(f"{part * 1e3:.0f}" for part in pair) for pair in (theirs, ours)]
    detail = f"decoding + update: public {parts[0]} ms, ours {parts[1]} ms"
    return verdict("semantic 8x40x448x576, decoding + update", sum(theirs) / sum(ours), 2, detail)


def normals() -> bool:
    """Measure angles of normals; the public meter takes pictures with values 0 to 255 and turns them into vectors."""
    generator = torch.Generator().manual_seed(0)
    shape = (BATCH[0], 3, *BATCH[1:])
    prediction, target = (torch.nn.functional.normalize(torch.randn(shape, generator=generator)) for _ in range(2))
    target.masked_fill_(torch.rand(BATCH, generator=generator).unsqueeze(1) < 0.1, 255)

    def unit(vectors: torch.Tensor) -> torch.Tensor:
        length = vectors.norm(dim=1, keepdim=True)
        none = length == 0
        length[none] = 1
        out = vectors / length
        out[none.expand_as(out)] = 0
        return out

    def public(picture: torch.Tensor) -> tuple[float, int]:
        vectors = picture.permute(0, 3, 1, 2) * 2 / 255 - 1
        valid = (target != 255).all(1)
        p, g = unit(vectors), unit(target)
        angle = torch.rad2deg(2 * torch.atan2((p - g).norm(dim=1), (p + g).norm(dim=1)))[valid]
        return angle.sum().item(), angle.numel()

    # Their decoding leaves the channels first in memory; the meter is faster where they are last.
    picture = ((prediction + 1) * 255 / 2).permute(0, 2, 3, 1)
    meter = MeanAngle(zero="count")
    meter.update(prediction, target)
    total, pixels = public(picture)
    assert abs(meter.compute().value - total / pixels) < 1e-3
    slow, other = seconds(lambda: public(picture), 3), seconds(lambda: public(picture.contiguous()), 3)
    fast = seconds(lambda: MeanAngle().update(prediction, target))
    print(f"     with the public meter's input moved to channels last: {other / fast:.1f}x")
    detail = f"public {slow * 1e3:.0f} ms, ours {fast * 1e3:.1f} ms"
    return verdict("normals 8x448x576", slow / fast, 10, detail)


def depth() -> bool:
    generator = torch.Generator().manual_seed(0)
    prediction, target = (10 * torch.rand(BATCH, generator=generator) for _ in range(2))
    target[torch.rand(BATCH, generator=generator) < 0.1] = 255

    def public(prediction: torch.Tensor, target: torch.Tensor) -> tuple[float, float, float]:
        """Sum as the public meter does, which also raises values of its arguments that are not positive."""
        valid = (target < 80) & (target > 0)
        pixels = valid.float().sum().item()
        target[target <= 0] = 1e-9
        prediction[prediction <= 0] = 1e-9
        squared = (target[valid] - prediction[valid]).pow(2).sum().item()
        relative = ((target[valid] - prediction[valid]).abs() / target[valid]).sum().item()
        return squared, relative, pixels

    meter = RMSE()
    meter.update(prediction, target)
    squared, _, pixels = public(prediction.clone(), target.clone())
    assert abs(meter.compute().value - (squared / pixels) ** 0.5) < 1e-3
    copies = prediction.clone(), target.clone()
    slow, fast = seconds(lambda: public(*copies), 3), seconds(lambda: RMSE().update(prediction, target))
    detail = f"public {slow * 1e3:.0f} ms, ours {fast * 1e3:.1f} ms"
    return verdict("depth 8x448x576", slow / fast, 5, detail)


def maxf() -> bool:
    generator = torch.Generator().manual_seed(0)
    prediction = torch.rand(8, 512, 512, generator=generator)
    target = (torch.rand(8, 512, 512, generator=generator) < 0.3).long()
    target[torch.rand(target.shape, generator=generator) < 0.05] = 255

    def loop() -> list[float]:
        """Return counts and per-image IoU per threshold: all that the metric gives."""
        valid = target != 255
        out = []
        for k in range(1, 20):
            p, g = (prediction >= k / 20) & valid, (target == 1) & valid
            hit, either = p & g, p | g
            out += [hit.sum().item(), p.sum().item(), g.sum().item()]
            out.append((hit.sum((1, 2)) / either.sum((1, 2))).mean().item())
        return out

    slow, fast = seconds(loop, 3), seconds(lambda: MaxF().update(prediction, target))
    return verdict(
        "maxF 8x512x512, 19 thresholds", slow / fast, 20, f"loop {slow * 1e3:.0f} ms, ours {fast * 1e3:.1f} ms"
    )


def scene(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Make an 8-bit edge prediction and the segments of a made-up scene with the edge density of NYUD-v2.

    The prediction is blurred, bent by some pixels, uneven in strength, and has the false edges of texture.
    """
    rng = np.random.default_rng(seed)

    def field(sigma: float) -> np.ndarray:
        out = ndimage.gaussian_filter(rng.normal(size=SHAPE), sigma)
        return out / out.std()

    segments = np.stack([field(18) for _ in range(12)]).argmax(0)
    objects = np.stack([field(9) for _ in range(5)]).argmax(0)
    segments = np.where(field(30) > 0.6, segments * 5 + objects, segments * 5).astype(np.int32)
    edges = ndimage.gaussian_filter(image.boundaries(segments).astype(float), 1.5)
    edges *= np.clip(0.6 + 0.3 * field(20), 0.05, 1) / edges.max()
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    edges = ndimage.map_coordinates(edges, [y + 2 * field(12), x + 2 * field(12)], order=1)
    texture = np.abs(field(2)) * np.clip(field(25), 0, 2)
    return (255 * np.clip(1.1 * edges + 0.1 * texture, 0, 1)).astype(np.uint8), segments


def make_pairs(count: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield (strength after NMS, thin label edges, level) for six thresholds of every scene."""
    for number in range(-(-count // 6)):
        prediction, segments = scene(number)
        strength, edges = image.suppress(prediction), image.label_edges(segments, "labelmap")
        for k in (5, 10, 20, 35, 50, 70):
            yield strength, edges, int(curve.levels(99)[k - 1])


def timed_matching(graph: csr_matrix, sender: Connection) -> None:
    begin = time.process_time()
    matched = int((maximum_bipartite_matching(graph) >= 0).sum())
    sender.send((matched, time.process_time() - begin))


def baseline(strength: np.ndarray, edges: np.ndarray, level: int, radius: float) -> tuple[int, int, float, float]:
    """Thin and match with scikit-image and scipy.

    Returns (predicted, matched, seconds of thinning + matching, seconds of building the graph). A matching that takes
    longer than PATIENCE is stopped and counts as PATIENCE seconds; matched is then -1.
    """
    begin = time.process_time()
    binary = thin(strength >= level)
    thinned = time.process_time()
    a, b = np.argwhere(binary), np.argwhere(edges)
    near = cKDTree(a).sparse_distance_matrix(cKDTree(b), radius, output_type="coo_matrix")
    graph = csr_matrix((np.ones(len(near.row), np.int8), (near.row, near.col)), shape=(len(a), len(b)))
    built = time.process_time()
    receiver, sender = multiprocessing.Pipe()
    worker = multiprocessing.Process(target=timed_matching, args=(graph, sender))
    worker.start()
    matched, matching = receiver.recv() if receiver.poll(PATIENCE) else (-1, PATIENCE)
    worker.terminate()
    worker.join()
    return len(a), matched, matching + thinned - begin, built - thinned


def odsf_step(count: int) -> bool:
    """Measure one threshold on its own, from the suppressed map and the label edges to the counts."""
    radius = MAX_DIST * float(np.hypot(*SHAPE))
    chord = curve.chord(radius)
    times = []  # (ours, baseline without its graph, graph)
    for number, (strength, edges, level) in enumerate(make_pairs(count)):
        levels = np.array([level], np.int32)
        predicted, matched, slow, graph = baseline(strength, edges, level, radius)
        ours = kernels.sweep(strength, edges, levels, chord, True)
        assert ours[1][0] == predicted and matched in (ours[0][0], -1)
        fast = seconds(lambda s=strength, e=edges, t=levels: kernels.sweep(s, e, t, chord, True))
        times.append((fast, slow, graph))
        print(
            f"  pair {number + 1}: {predicted} x {np.count_nonzero(edges)} pixels, ours {fast * 1e3:.1f} ms, "
            f"thin + match {slow * 1e3:.0f} ms, graph {graph * 1e3:.0f} ms",
            file=sys.stderr,
        )
    fast, slow, graph = np.array(times).T
    cut = int((slow >= PATIENCE).sum())
    detail = f"{len(times)} pairs, medians {np.median(slow) * 1e3:.0f} / {np.median(fast) * 1e3:.2f} ms"
    detail += f"; {cut} baselines stopped after {PATIENCE:g} s"
    print(f"     with building scipy's graph: {np.median((slow + graph) / fast):.0f}x")
    return verdict("odsF step 425x560, thin + match, median", float(np.median(slow / fast)), 20, detail)


def whole_set(images: int = 6) -> bool:
    """Measure NMS, label edges and all 99 thresholds, extrapolated to NYUD-v2's 654 images on two cores."""
    options = {"gt": "labelmap", "max_dist": MAX_DIST, "thresholds": 99}
    fine = True
    for nms in (True, False):
        times = []
        for seed in range(images):
            prediction, segments = scene(100 + seed)
            times.append(seconds(lambda p=prediction, s=segments, n=nms: image.score(p, s, None, nms=n, **options), 3))
        minutes = statistics.mean(times) * 654 / 2 / 60
        fine &= minutes < 10
        name = f"odsF of 654 images x 99 thresholds on two cores, {'with' if nms else 'without'} NMS"
        print(
            f"{'ok  ' if minutes < 10 else 'FAIL'} {name}: {minutes:.2f} min (must be < 10), "
            f"{statistics.mean(times) * 1e3:.0f} ms per image"
        )
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=36, help="(image, threshold) pairs of the odsF step")
    args = parser.parse_args()
    torch.set_num_threads(1)
    return 0 if all([miou(), semantic(), normals(), depth(), maxf(), whole_set(), odsf_step(args.pairs)]) else 1


if __name__ == "__main__":
    sys.exit(main())
