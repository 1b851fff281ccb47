"""`fmtlbench completion`: what a shell needs to complete our commands."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")

EPILOG = """\
examples:
  eval "$(fmtlbench completion bash)"                            (in ~/.bashrc; zsh likewise)
  fmtlbench completion fish > ~/.config/fish/completions/fmtlbench.fish
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "completion",
        help="shell code that completes verbs, flags and names",
        description="Print the code by which a shell completes verbs, flags, and the names of methods and scenarios.",
        epilog=EPILOG,
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    import argcomplete

    print(argcomplete.shellcode(["fmtlbench"], shell=args.shell))
    return 0
