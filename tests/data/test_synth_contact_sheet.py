"""The contact sheet shows every sample and task, in colours that carry the labels."""

import subprocess
import sys

import numpy as np
import pytest

from fmtlbench.data.contact_sheet import contact_sheet
from fmtlbench.data.datasets.synth import DOMAINS, generate
from fmtlbench.tasks._kinds._colours import palette


@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_a_row_per_sample_and_a_column_per_task(name, tmp_path):
    spec = DOMAINS[name]
    samples = [generate(name, "test", index, (32, 48)) for index in range(3)]
    figure = contact_sheet(samples, spec.tasks, spec.class_names)
    pictures = [axis for axis in figure.axes if axis.images]
    assert len(pictures) == 3 * (1 + len(spec.tasks))
    shown = [axis.images[0].get_array() for axis in pictures]
    assert np.array_equal(shown[0], samples[0]["image"])
    column = 1 + spec.tasks.index("normals")
    assert np.allclose(shown[column], (samples[0]["normals"] + 1) / 2, atol=1e-6)
    semseg = shown[1 + spec.tasks.index("semseg")]
    for k in np.unique(samples[0]["semseg"]):
        assert len(np.unique(semseg[samples[0]["semseg"] == k], axis=0)) == 1  # one colour per class
    assert len(np.unique(semseg.reshape(-1, 3), axis=0)) == len(np.unique(samples[0]["semseg"]))
    words = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert words >= {word for names in spec.class_names.values() for word in names}
    figure.savefig(tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").stat().st_size > 10_000


def test_colours_can_be_told_apart():
    colours = palette(40)
    gaps = np.linalg.norm(colours[:, None] - colours[None], axis=-1) + np.eye(40)
    assert gaps.min() > 0.02
    first = palette(13)
    assert (np.linalg.norm(first[:, None] - first[None], axis=-1) + np.eye(13)).min() > 0.15


def test_pyplot_and_matplotlib_are_not_imported_for_nothing():
    code = (
        "import sys, numpy as np; from fmtlbench.data.contact_sheet import contact_sheet\n"
        "assert 'matplotlib' not in sys.modules\n"
        "contact_sheet([{'image': np.zeros((16, 16, 3), np.uint8)}], (), {})\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
