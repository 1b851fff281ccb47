"""`fmtlbench list`: what there is to run. Never imports torch."""

from __future__ import annotations

import argparse
import json

from ..bench.catalog import KINDS, catalog
from ._tables import print_records


def add(verbs) -> None:
    parser = verbs.add_parser("list", help=f"what there is: {', '.join(KINDS)}")
    parser.add_argument("kind", nargs="?", choices=sorted(KINDS), help="one kind only; default: all")
    parser.add_argument("pattern", nargs="?", help="only names like this one, e.g. backbones 'timm/convnext*'")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    listing = {kind: catalog(kind, args.pattern) for kind in ([args.kind] if args.kind else KINDS)}
    if args.json:
        print(json.dumps(listing[args.kind] if args.kind else listing, indent=2, ensure_ascii=False))
        return 0
    for kind, records in listing.items():
        print_records(records, title=kind)
    return 0
