"""The classroom: six assignments from one source each, and a grader that finds answers by name.

`SEED` chooses the clients that the student versions show and the cases of the hidden checks. Change
it once a year, then run `make assignments`.
"""

SEED = 2026
