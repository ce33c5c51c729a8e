"""Draws overview.png, the picture of the README: python assets/overview.py"""

from io import BytesIO
from pathlib import Path

from PIL import Image

import fts
from fts import plotting
from fts.lab.figures import data


def main(path: Path) -> None:
    """KS on a fifth of its sensors with 10 % noise, by the lines that the README shows."""
    plotting.use_style()
    trajectory = fts.simulate("ks")
    observations = fts.observe(trajectory, "S20", seed=1301, noise=0.1)
    field = fts.fit(observations, progress=False)
    figure = data.overview(trajectory, observations, field, fts.select(field, library="ks"))
    drawn = BytesIO()
    figure.savefig(drawn, dpi=200, facecolor="white")
    # A palette: a picture in a repository should be small.
    Image.open(drawn).convert("RGB").quantize(96).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(__file__).with_name("overview.png"))
