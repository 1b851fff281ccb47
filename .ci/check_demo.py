"""The demo's promise: every task of every client clearly better than the best constant prediction."""

import json
import sys

scores = [record for record in json.load(sys.stdin)["scores"] if record["primary"]]
if len(scores) != 9:
    sys.exit(f"the demo has {len(scores)} task columns, expected nine")
for record in scores:
    value, trivial = record["value"], record["trivial"]
    gain = (value - trivial) / trivial * (1 if record["higher_is_better"] else -1)
    if gain < 0.1:
        sys.exit(f"{record['client']} {record['task']}: {value:.4g} is not clearly better than trivial {trivial:.4g}")
