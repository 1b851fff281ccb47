"""Install the wheels of a release outside the checkout and use them there.

`check_wheel.py dist` checks the source archive in dist, the wheel there that `python -m build` made of it, and a wheel
made of the checkout. Environments borrow the libraries of the Python that runs this; FULL=1 installs them for real,
which takes 6 GB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("fmtlbench", "algorithms", "metrics", "reports", "scenarios")
SMALL = {
    "data.train_samples.pascal": 20, "data.train_samples.nyud": 8,
    "data.test_samples.pascal": 2, "data.test_samples.nyud": 2,
    "data.size.pascal": "[32,32]", "data.size.nyud": "[32,32]", "train.batch_size": 4,
}  # fmt: skip
NEEDED = ("tests/kit.py", "docs/guide.md", "examples/hello_fmtl/pyproject.toml", "constraints.txt", "Makefile")
UNWANTED = ("results/", "runs/", ".venv", "build/", "dist/")


def tell(*command: str | Path, **options: object) -> str:
    """Run a command and return what it prints; end with its last lines if it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1800, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def list_sources() -> set[str]:
    """List the files of the packages in the checkout by the names they are installed under."""
    names = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            hidden = any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(ROOT).parts)
            if path.is_file() and not hidden and path.suffix != ".pyc":
                name = path.relative_to(ROOT).as_posix()
                names.add(name if package == "fmtlbench" else f"fmtlbench/{name}")
    return names


def check_equal(found: set[str], expected: set[str], what: str) -> None:
    """End with the names that are missing or too many."""
    if found != expected:
        sys.exit(f"{what}: missing {sorted(expected - found)}, too many {sorted(found - expected)}")


def check_archive(archive: Path) -> None:
    """Check that a source archive has the packages and what tests need, and nothing that runs left behind."""
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    for name in list_sources():
        local = name.removeprefix("fmtlbench/")
        if name not in names and local not in names:
            sys.exit(f"{archive.name}: no {name}")
    if missing := [name for name in NEEDED if name not in names]:
        sys.exit(f"{archive.name}: no {', '.join(missing)}")
    if unwanted := [name for name in sorted(names) if name.startswith(UNWANTED)]:
        sys.exit(f"{archive.name}: {len(unwanted)} files that are not wanted, {unwanted[0]} among them")
    print(f"{archive.name}: {len(names)} files, {archive.stat().st_size / 1e6:.1f} MB")


def check_files(wheel: Path) -> None:
    """Check that a wheel has every file of the packages, and no other."""
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
    check_equal(names, list_sources(), wheel.name)
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.1f} MB")


def make_environment(folder: Path, wheel: Path, full: bool) -> Path:
    """Install a wheel and the example of a package in a new environment; return where its programs lie."""
    venv.create(folder, with_pip=True)
    bin_ = folder / "bin"
    pip = [bin_ / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    if full:
        tell(*pip, "--constraint", ROOT / "constraints.txt", wheel)
    else:
        tell(*pip, "--no-deps", wheel)
        borrow_libraries(bin_ / "python")
    # From a copy: pip builds in the folder itself and leaves files there.
    example = shutil.copytree(ROOT / "examples" / "hello_fmtl", folder / "hello_fmtl")
    tell(*pip, "--no-deps", example)
    return bin_


def borrow_libraries(python: Path) -> None:
    """Let an environment see the libraries of this one: all that is on its path but the checkout itself."""
    site = Path(tell(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    places = [place for place in sys.path if place.endswith(("site-packages", "dist-packages"))]
    # Folders only, not their own .pth files: one of those leads to the checkout.
    (site / "borrowed.pth").write_text("\n".join(places) + "\n", encoding="utf-8")


def try_out(bin_: Path, folder: Path) -> None:
    """Do in an empty folder what a newcomer does first."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    options = {"cwd": folder, "env": {**environment, "OMP_NUM_THREADS": "1"}}
    where = tell(bin_ / "python", "-c", "import fmtlbench; print(fmtlbench.__file__)", **options).strip()
    if not Path(where).is_relative_to(bin_.parent):
        sys.exit(f"imported from {where}, expected a place below {bin_.parent}")
    version = tell(bin_ / "fmtlbench", "--version", **options).strip()
    listed = tell(bin_ / "fmtlbench", "list", **options)
    if absent := [name for name in ("fedhca2", "st_mt_1", "halfway") if name not in listed]:
        sys.exit(f"`fmtlbench list` does not name {', '.join(absent)}")
    small = [f"--set={key}={value}" for key, value in SMALL.items()]
    asked = ["--algo", "fedhca2", "--scenario", "st_mt_1", "--rounds", "1", "--device", "cpu", "--no-energy"]
    tell(bin_ / "fmtlbench", "run", *asked, *small, **options)
    if "FedHCA²" not in tell(bin_ / "fmtlbench", "leaderboard", "runs", **options):
        sys.exit("the leaderboard has no row of the run")
    print(f"  {version}: list, run and leaderboard work")


def main(dist: Path) -> None:
    """Check what `python -m build` left in `dist`, and a wheel of the checkout."""
    [archive], [wheel] = dist.glob("*.tar.gz"), dist.glob("*.whl")
    check_archive(archive)
    with tempfile.TemporaryDirectory(prefix="wheel-") as name:
        folder = Path(name)
        for left in ("lib", *(path.name for path in (ROOT / "build").glob("bdist.*"))):
            shutil.rmtree(ROOT / "build" / left, ignore_errors=True)  # files of earlier builds would be packed again
        tell(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT)
        [direct] = (folder / "direct").glob("*.whl")
        for kind, made in (("of the checkout", direct), ("of the source archive", wheel)):
            print(f"the wheel {kind}:")
            check_files(made)
            place = folder / kind.replace(" ", "-")
            (place / "empty").mkdir(parents=True)
            try_out(make_environment(place / "venv", made, bool(os.environ.get("FULL"))), place / "empty")
            shutil.rmtree(place)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
