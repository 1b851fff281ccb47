"""Many runs: which ones a request means (grid, plan), how long they take (estimate), and doing them (workers).

Nothing here imports torch: every run is a process of its own, and this one only plans, watches and counts.
"""
