"""Stripes: images that are made, not read, with two labels."""

from typing import ClassVar

import numpy as np

from fmtlbench.data.datasets import DATASETS, Dataset


@DATASETS.register("stripes")
class Stripes(Dataset):
    title = "Stripes"
    description = "stripes of three colours and how bright they are"
    tasks = ("semseg", "brightness")
    class_names: ClassVar = {"semseg": ("dark", "middle", "light")}

    def list_images(self):
        return [f"{self.split}-{number}" for number in range(12 if self.split == "train" else 4)]

    def sample(self, index, keys=None):
        rng = np.random.default_rng([index, self.split == "train"])
        classes = rng.integers(3, size=(1, 8)).repeat(8, axis=1).repeat(48 + index, axis=0).astype(np.uint8)
        image = (classes[..., None] * 90 + rng.integers(30, size=(*classes.shape, 3))).astype(np.uint8)
        whole = {"image": image, "semseg": classes, "brightness": (image.mean(-1) / 255 + 0.1).astype(np.float32)}
        return {key: whole[key] for key in self.check_keys(keys)}
