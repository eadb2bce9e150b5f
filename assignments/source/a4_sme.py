"""Assignment 4: points, hidden checks, and what a person has to mark."""

from assignments.marking import Assignment, Part
from smelib import checks

ASSIGNMENT = Assignment(
    name="a4_sme",
    title="SME from scratch, with the gradient of alpha",
    minutes=160,
    reads=("04_many_steps", "05_gradient_flow_2d", "07_sme"),
    goals=(
        "turn an unknown path into one learned number, and write the loss that learns it",
        "derive the gradient of alpha by hand, and let automatic differentiation confirm it",
        "compare SME with IG on the same clients, and say what alpha's place does not tell",
    ),
    parts=(
        Part("surrogate", {"value": 2, "gradients": 1}, checks.surrogate),
        Part("sme_loss", {"value": 4, "gradients": 3}, checks.sme_loss),
        Part("alpha_slope", {"value": 5}, checks.alpha_slope),
        Part("sme_steps", {"value": 5}, checks.sme_steps),
    ),
    closed=(
        "checks",
        "objectives",
        "priors",
        "params",
        "attacks",
        "solver",
        "walking",
        "auditing",
    ),
    rubric=(
        (
            "Question A: the derivation",
            3,
            "1 for the chain rule with the surrogate's derivative, w_T - w_0; 1 for naming the "
            "first factor the gradient of the mismatch by the weights; 1 for what it costs: no "
            "backward pass beyond the one that the images need.",
        ),
        (
            "Question B: does SME win?",
            3,
            "1 for paired differences over at least three clients; 1 for their spread; 1 for "
            "separating two statements: where alpha ends, and how good the picture is.",
        ),
    ),
)
