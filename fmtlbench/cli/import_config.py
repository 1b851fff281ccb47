"""`fmtlbench import-config`: a config of the public FedHCA² or FMTL-Bench code, as a scenario and a command."""

from __future__ import annotations

import argparse
from pathlib import Path

ABOUT = """Turn a config of the public FedHCA² or FMTL-Bench repository into a scenario file, the overrides and the
command that go with it, and list what has no counterpart here. Without -o the scenario is printed, with the rest as
comments."""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "import-config", help="a public FedHCA² or FMTL-Bench config as a scenario", description=ABOUT
    )
    parser.add_argument("file", help="the .yml file")
    parser.add_argument("-o", "--output", metavar="OUT.yml", help="the scenario file to write")
    parser.add_argument("--algo", help="the method, which those files do not name; default: as they imply")
    parser.add_argument("--preset", help="default: paper or fmtl-bench, whose config it is")
    parser.add_argument("--gpus", type=int, default=2, help="of the public run, whose batches are per GPU; default: 2")
    parser.add_argument("--force", action="store_true", help="overwrite OUT.yml")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import is_stdout
    from ..importing import import_config

    target = None if is_stdout(args.output) else _target(args)
    imported = import_config(args.file, args.algo, args.preset, args.gpus)
    if target is None:
        print(imported.text(Path(args.file).with_suffix(".yml").name), end="")
        return 0
    from ..base.files import write_output_text

    write_output_text(target, imported.text(target))
    print(f"scenario\t{target}")
    if imported.same_as:
        print(f"same clients\t{imported.same_as}")
    print(f"command\t{imported.command(target)}")
    for kind, notes in (("remark", imported.notes.remarks), ("not mapped", imported.notes.unmapped)):
        for note in notes:
            print(f"{kind}\t{note}")
    return 0


def _target(args: argparse.Namespace) -> Path:
    from ..base.errors import UsageError
    from ..base.files import check_output, is_stream

    target = Path(args.output)
    if is_stream(target):
        return target
    if target.suffix not in (".yml", ".yaml"):
        raise UsageError(f"-o {target}: expected a name ending in .yml or .yaml")
    if check_output(target).exists():
        if Path(args.file).exists() and target.samefile(args.file):
            raise UsageError(f"-o {target}: is the file to import; give another name")
        if not args.force:
            raise UsageError(f"-o {target}: exists already; --force overwrites it")
    return target
