r"""LaTeX with booktabs: a fragment to \input, or a whole document."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ..table import BEST, SECOND, Table
from ._words import cell_text, clean, has_marks

PACKAGES = (r"\usepackage[T1]{fontenc}", r"\usepackage{booktabs}", r"\usepackage{graphicx}")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": "{`}",
    "'": "{'}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",  # after a line break LaTeX would take these for its arguments
    "²": r"\textsuperscript{2}",
    "³": r"\textsuperscript{3}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "·": r"$\cdot$",
    "→": r"$\rightarrow$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "∞": r"$\infty$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "°": r"$^{\circ}$",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
}
_CAPITALS = {"Γ", "Δ", "Θ", "Λ", "Ξ", "Π", "Σ", "Υ", "Φ", "Ψ", "Ω"}  # the others look like Latin letters


def render(tables: Sequence[Table], standalone: bool = False) -> str:
    r"""Return one table environment each; `standalone` puts \documentclass and \end{document} around them."""
    body = "\n".join(map(_table, tables))
    if not standalone:
        return "% Needs in the preamble:\n" + "".join(f"%   {line}\n" for line in PACKAGES) + "\n" + body
    head = [r"\documentclass{article}", r"\usepackage[a4paper,landscape,margin=15mm]{geometry}", *PACKAGES]
    return "\n".join([*head, r"\begin{document}", "", body, r"\end{document}", ""])


def _table(table: Table) -> str:
    letters = table.footnotes()

    def mark(note: str) -> str:
        return rf"\textsuperscript{{{letters[note]}}}" if note else ""

    columns, labels = table.columns, len(table.heads)
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{escape(table.title)}. {escape(table.caption)}}}",
        rf"\label{{tab:{re.sub(r'[^a-zA-Z0-9]+', '-', table.name)}}}",
        r"\sbox0{%",  # measured first, so that a wide table shrinks to the line and a narrow one keeps its size
        rf"\begin{{tabular}}{{{'l' * labels}{'c' * len(columns)}}}",
        r"\toprule",
    ]
    if any(c.heading for c in columns):
        spans, rules, at = [""] * labels, [], labels + 1
        for heading, width in table.headings():
            spans.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(heading)}}}")
            if heading:
                rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
            at += width
        lines += [" & ".join(spans) + r" \\", " ".join(rules)]
    lines.append(" & ".join([*map(escape, table.heads), *(escape(c.title) for c in columns)]) + r" \\")
    if any(c.metric or c.arrow for c in columns):
        lines.append(" & ".join([*[""] * labels, *(escape(f"{c.metric} {c.arrow}".strip()) for c in columns)]) + r" \\")
    lines.append(r"\midrule")
    for row in table.rows:
        first = escape(row.labels[0]) + mark(row.note)
        cells = [
            cell_text(cell, c, _dress, r" $\pm$ ", _raised).replace(" [-", " [$-$").replace(", -", ", $-$")
            + mark(cell.note)
            for c, cell in zip(columns, row.cells)
        ]
        lines.append(" & ".join([first, *map(escape, row.labels[1:]), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}}%"]
    lines.append(r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi")
    notes = [r"\textbf{best}, \underline{second}, compared as printed"] if has_marks(table) else []
    notes += [rf"\textsuperscript{{{letter}}}~{escape(note)}" for note, letter in letters.items()]
    notes += map(escape, table.notes)
    if notes:
        lines += [r"\par\smallskip", r"\parbox{\linewidth}{\footnotesize\raggedright " + r"\\".join(notes) + "}"]
    lines += [r"\end{table}", ""]
    return "\n".join(lines)


def _dress(text: str, mark: str) -> str:
    text = f"$-${text[1:]}" if re.fullmatch(r"-[\d.]+", text) else escape(text)
    return {BEST: rf"\textbf{{{text}}}", SECOND: rf"\underline{{{text}}}"}.get(mark, text)


def _raised(signs: str) -> str:
    return rf"\textsuperscript{{{escape(signs)}}}"


def escape(text: str) -> str:
    """Return text that pdfLaTeX prints as it is; a character its fonts lack is named by its code point."""
    return "".join(map(_character, clean(text)))


def _character(c: str) -> str:
    if c in _SPECIAL:
        return _SPECIAL[c]
    if c in _CAPITALS or "α" <= c <= "ω":
        name = unicodedata.name(c).split()[-1].lower().replace("lamda", "lambda")
        return "$o$" if name == "omicron" else f"$\\{name.capitalize() if c in _CAPITALS else name}$"
    if " " <= c <= "~" or "\u00c0" <= c <= "\u017f":  # ASCII and the accented Latin letters of T1
        return c
    return f"{{[}}U+{ord(c):04X}{{]}}"
