"""Assignment 5: points, hidden checks, and what a person has to mark."""

from assignments.marking import Assignment, Part
from smelib import checks

ASSIGNMENT = Assignment(
    name="a5_recount",
    title="Read a paper critically: count its scoreboard again",
    minutes=140,
    reads=("07_sme", "09_shootout"),
    goals=(
        "put an interval on a mean of few clients, and on a difference of two means",
        "tell *equal* from *not shown to differ*, with a band that is chosen beforehand",
        "say what a reproduction with few clients can decide, and what it cannot",
    ),
    parts=(
        Part("confidence", {"value": 4}, checks.confidence),
        Part("apart", {"value": 3}, checks.apart),
        Part("verdict", {"value": 5}, checks.verdict),
        Part("gain", {"value": 3}, checks.gain),
        Part("recount", {"value": 5}, checks.recount),
    ),
    closed=("checks", "reproduce"),
    rubric=(
        (
            "Question A: the band",
            2,
            "1 for a reason for 2 dB from outside the data (what the eye sees, the spread between "
            "seeds); 1 for the counts with 1 and 4 dB beside it, and which verdicts change.",
        ),
        (
            "Question B: one claim of the paper",
            4,
            "1 for a claim quoted with its place; 1 for the cells that it rests on; 1 for their "
            "verdicts; 1 for a conclusion that does not say more than those: undecided is not no.",
        ),
    ),
)
