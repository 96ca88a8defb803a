"""LaTeX on paper."""

import re
import shutil
import subprocess

import pytest

from relaymodel.display import latex_document


def compile_latex(folder, body):
    """Run pdflatex on a fragment; fail if it does, or if anything is beyond a margin by more than a point."""
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex")
    (folder / "a.tex").write_text(latex_document(body), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-1000:]
    assert [x for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", done.stdout.replace("\n", "")) if float(x) > 1] == []
