"""What a fit imports: nothing that it does not use, because imports are most of a first fit."""

import subprocess
import sys

UNUSED = ("jax", "matplotlib", "torch", "networkx", "sklearn.ensemble", "causallearn", "rich")
CODE = f"""
import sys, tempfile, warnings
import numpy as np
import rescore as rs

warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=1)
X[:40] *= [1, 9, 1]  # so that there is something to balance
learners = [rs.Linear(), rs.GES(), rs.SortNRegress(), rs.Random(), rs.Empty()]
reweighted = [rs.ReScore(rs.Linear()), rs.ReScore(rs.Linear(), tau=0.5), rs.ReScore(rs.GES())]
for model in [*learners, *reweighted]:
    model.fit(X)
    used = [module for module in {UNUSED} if module in sys.modules]
    assert not used, f"{{model}} imported {{used}}"
with tempfile.TemporaryDirectory() as folder:
    rs.save(reweighted[0], folder)
    rs.load(folder)
rs.CDNOD()  # its fit needs causal-learn
assert "jax" not in sys.modules
assert reweighted[0].diagnostics_["weighting"]["groups"] > 1
"""


def test_learners_that_compile_nothing_import_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", CODE], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
