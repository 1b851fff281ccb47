"""What the scores of a finished run were computed from: the sums of every meter, from which anybody can score again."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.files import read_whole, replace_file
from ..base.stored import DamagedRun

if TYPE_CHECKING:
    import numpy as np

ScoreSums = dict[tuple[str, str, str], "dict[str, np.ndarray]"]  # (client, split, task) → name of a sum → array
MOST_BYTES = 64 * 2**20  # of all arrays together; real ones have some kilobytes


def write_sums(file: Path, sums: ScoreSums) -> None:
    """Write the sums as compressed arrays, in the order of their names: the same sums give the same bytes."""
    import numpy as np

    arrays = {
        f"{client}/{split}/{task}/{name}": array
        for (client, split, task), named in sums.items()
        for name, array in named.items()
    }

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as packed:
            for name, array in sorted(arrays.items()):
                content = io.BytesIO()
                np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
                member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, whenever it is written
                packed.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED)

    replace_file(file, write)


def read_sums(file: Path) -> ScoreSums | None:
    """Read what `write_sums` wrote; None where there is no file.

    Raises:
        DamagedRun: It is no such file.
    """
    import numpy as np

    try:
        content = read_whole(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DamagedRun(file.parent, f"{file.name} cannot be read: {error.strerror or error}") from None
    sums: ScoreSums = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if (size := sum(member.file_size for member in packed.infolist())) > MOST_BYTES:
                raise DamagedRun(file.parent, f"{file.name} unpacks to {size} bytes, expected at most {MOST_BYTES}")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            for key in arrays.files:
                client, split, task, name = key.rsplit("/", 3)
                sums.setdefault((client, split, task), {})[name] = arrays[key]
    except DamagedRun:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many kinds for files that are not theirs
        raise DamagedRun(file.parent, f"{file.name} cannot be read: {error}") from None
    return sums
