"""Quizzes that a reader can answer on the static page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files


def quiz(name: str, questions: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Show a self-check quiz that needs no script: an answer unfolds to the reason behind it.

    Each question has its answers with the reason why each is right or wrong; the first one is
    right, and they are shown from short to long. Of one question one answer is open at a time;
    `name` tells the quiz from others on the page.
    """
    from IPython.display import HTML, display

    style = files("smelib.viz").joinpath("quiz.css").read_text(encoding="utf-8")
    parts = [
        _question(f"{name}-{i}", i, question, answers)
        for i, (question, answers) in enumerate(questions.items(), 1)
    ]
    display(HTML(f'<div class="smelib-quiz"><style>{style}</style>{"".join(parts)}</div>'))


def _question(group: str, i: int, question: str, answers: Sequence[tuple[str, str]]) -> str:
    right = answers[0][0]
    lines = [
        f'<details name="{escape(group)}"><summary>{escape(answer)}</summary>'
        f'<p class="{"right" if answer == right else "wrong"}">{escape(why)}</p></details>'
        for answer, why in sorted(answers, key=lambda pair: len(pair[0]))
    ]
    return f"<p><b>{i}.</b> {escape(question)}</p>{''.join(lines)}"
