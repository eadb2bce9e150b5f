"""Quizzes that a reader can answer on the static page."""

from __future__ import annotations

import random
from collections.abc import Sequence


def quiz(name: str, questions: dict[str, Sequence[tuple[str, str]]]) -> None:
    """Show a self-check quiz that works on the static page and loads nothing from the network.

    Each question has its answers with the reason why each is right or wrong; the first one is
    right, and they are shown from short to long. `name` gives the quiz a fixed place on the page.
    """
    from IPython.utils.capture import capture_output
    from jupyterquiz import display_quiz

    made = []
    for question, answers in questions.items():
        options = [
            {"answer": answer, "correct": i == 0, "feedback": why}
            for i, (answer, why) in enumerate(answers)
        ]
        options.sort(key=lambda option: len(option["answer"]))
        made.append({"question": question, "type": "multiple_choice", "answers": options})
    state = random.getstate()
    random.seed(name)  # jupyterquiz draws the element's name
    try:
        with capture_output() as shown:
            display_quiz(made, shuffle_questions=False, shuffle_answers=False)
    finally:
        random.setstate(state)
    for part in shown.outputs:  # the page brings its own MathJax
        for kind, text in part.data.items():
            part.data[kind] = text.replace(
                "https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-svg.js", "data:text/javascript,"
            )
    shown.show()
