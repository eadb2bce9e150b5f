"""The list of mutants fits the source, and the tool that tries them tells caught from survived."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mutants
import pytest
from mutant_list import MODULES, Module, Mutant

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", MODULES)
def test_every_mutant_fits_the_source(name: str) -> None:
    module = MODULES[name]
    source = (ROOT / module.file).read_text("utf-8")
    for mutant in module.mutants:
        assert mutants.mutated(source, module, mutant) != source
    assert all((ROOT / test).is_file() for test in module.tests)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("z", "y", "0 times"), ("a", "b", "2 times"), ("+", "+ (", "not Python")],
)
def test_a_mutant_that_does_not_fit_is_an_error(old: str, new: str, message: str) -> None:
    module = Module("m.py", (), ())
    with pytest.raises(mutants.MisfitError, match=message):
        mutants.mutated("a = a + 1", module, Mutant(old, new, "nothing"))


def test_the_table_names_survivors_and_judges_them() -> None:
    told = Mutant("a", "b", "rounding", equivalent="the sums are the same")
    verdicts = [mutants.Verdict("params", Mutant("x", "y", "all"), caught=True)] * 18
    text, good = mutants.table([*verdicts, mutants.Verdict("params", told, caught=False)])
    assert good
    assert "survived: rounding (the sums are the same)" in text
    missed = mutants.Verdict("params", Mutant("a", "b", "the sign"), caught=False)
    text, good = mutants.table([*verdicts[:8], missed])
    assert not good
    assert "survived: the sign (a test is missing)" in text


JUDGE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import mutants
if __name__ == "__main__":
    print(mutants.judge(Path(sys.argv[2]), ("tests/test_defences.py",), 300))
"""


def judged_afresh(folder: Path) -> int:
    """In a fresh interpreter: another test may have started the fork server on this package."""
    (folder / "judge.py").write_text(JUDGE)
    words = [sys.executable, folder / "judge.py", ROOT / "tests", folder]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_the_tests_judge_the_copy_and_not_this_package(tmp_path: Path) -> None:
    mutants.copy(ROOT, tmp_path)
    assert judged_afresh(tmp_path) == mutants.SURVIVED
    file = tmp_path / "smelib" / "defences" / "seam.py"
    file.write_text(file.read_text("utf-8").replace("return update\n", "return None\n"), "utf-8")
    assert judged_afresh(tmp_path) == mutants.CAUGHT
