"""Assignment 1: points, hidden checks, and what a person has to mark."""

from assignments.marking import Assignment, Part
from smelib import checks

ASSIGNMENT = Assignment(
    name="a1_leak",
    title="One gradient gives back its data",
    minutes=140,
    reads=("01_what_the_server_sees", "02_dlg"),
    goals=(
        "read an image and a label out of a linear layer's gradient, and say when that fails",
        "write DLG's loss so that it can be differentiated twice",
        "run the attack and judge it by more than one seed",
    ),
    parts=(
        Part("divide", {"value": 5}, checks.divide),
        Part("read_label", {"value": 3}, checks.read_label),
        Part("sent_gradient", {"value": 2}, checks.sent_gradient),
        Part("dlg_loss", {"value": 3, "gradients": 3}, checks.dlg_loss),
        Part("descend", {"value": 4}, checks.descend),
    ),
    rubric=(
        (
            "Question A: which of the four digits come back, and why those?",
            3,
            "1 for saying which; 2 for the cause: a unit gives an image away where the ReLU is off "
            "for all others, so that the blend has one ingredient. 'Because of the seed' is 0.",
        ),
        (
            "Question B: is DLG safe to judge by one run?",
            3,
            "1 for a success rate over the seeds instead of a mean PSNR alone; 1 for naming the "
            "threshold before counting; 1 for a failed seed described (flat loss, wrong minimum).",
        ),
    ),
)
