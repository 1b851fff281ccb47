"""What the papers say of their results, as named checks on numbers: printed ones, or those of runs.

`load_claims` reads reports/published/claims.yml, `judge` decides one claim, `claims_table` makes a table of verdicts.
Numbers come as `Evidence`, one object per published table:

    tables = {name: PrintedEvidence(load_published(name)) for name in published_names()}
    verdicts = [judge(claim, tables) for claim in load_claims().values()]

For measured numbers give any object with `table` and `values` in place of `PrintedEvidence`, and stored runs as
`EvidenceOfRuns` for the claims about figures.
"""

from ._cells import Evidence, PrintedEvidence
from ._decide import ANSWERS, FAILS, HOLDS, NO_NUMBERS, UNDECIDED
from ._judge import Verdict, claims_table, compare_verdicts, judge, judge_printed
from ._load import FILE, Claim, load_claims
from ._runs import EvidenceOfRuns

__all__ = [
    "ANSWERS",
    "FAILS",
    "FILE",
    "HOLDS",
    "NO_NUMBERS",
    "UNDECIDED",
    "Claim",
    "Evidence",
    "EvidenceOfRuns",
    "PrintedEvidence",
    "Verdict",
    "claims_table",
    "compare_verdicts",
    "judge",
    "judge_printed",
    "load_claims",
]
