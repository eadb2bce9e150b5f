"""Assignment 2: points, hidden checks, and what a person has to mark."""

from assignments.marking import Assignment, Part
from smelib import checks

ASSIGNMENT = Assignment(
    name="a2_ig",
    title="Inverting Gradients from its parts",
    minutes=150,
    reads=("03_ig", "04_many_steps"),
    goals=(
        "compare two updates by their direction, and say what that makes of clipping",
        "say in a formula what you believe of images, and keep a search inside the pixels",
        "take an attack apart and measure what each part is worth",
    ),
    parts=(
        Part("angle", {"value": 2, "gradients": 1}, checks.angle),
        Part("total_variation", {"value": 3, "gradients": 1}, checks.total_variation),
        Part("project", {"value": 4}, checks.project),
        Part("ig_loss", {"value": 3, "gradients": 2}, checks.ig_loss),
        Part("ig_steps", {"value": 4}, checks.ig_steps),
    ),
    closed=(
        "checks",
        "objectives",
        "priors",
        "attacks",
        "solver",
        "walking",
        "auditing",
    ),
    rubric=(
        (
            "Question A: which part is worth most?",
            4,
            "1 for a table of PSNR over at least three seeds with its spread; 1 for the order of "
            "the parts; 2 for an honest reading: a difference smaller than the spread is not one.",
        ),
        (
            "Question B: what does clipping do to this attack?",
            2,
            "1 for: a clipped update has the same direction, the loss does not change; 1 for the "
            "converse: the step's length, which clipping hides, was never used.",
        ),
    ),
)
