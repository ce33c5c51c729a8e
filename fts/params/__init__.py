"""Settings: what a number means (`types`) and what the paper used (`paper`).

Nothing else in the repository contains such a number.
"""

from fts.params.paper import DEVELOPMENT_SEEDS as DEVELOPMENT_SEEDS
from fts.params.paper import DOUBT as DOUBT
from fts.params.paper import LIBRARIES as LIBRARIES
from fts.params.paper import PAPER as PAPER
from fts.params.paper import PROJECTED as PROJECTED
from fts.params.paper import RECIPE_VERSIONS as RECIPE_VERSIONS
from fts.params.paper import REFINED as REFINED
from fts.params.paper import RELATIVE_THRESHOLD as RELATIVE_THRESHOLD
from fts.params.paper import SHORT_NAMES as SHORT_NAMES
from fts.params.paper import STRONG_STLSQ as STRONG_STLSQ
from fts.params.paper import STRONG_STRIDGE as STRONG_STRIDGE
from fts.params.paper import TEST_SEEDS as TEST_SEEDS
from fts.params.types import AdapterParams as AdapterParams
from fts.params.types import DoubtParams as DoubtParams
from fts.params.types import FieldParams as FieldParams
from fts.params.types import FreezeThenSelectParams as FreezeThenSelectParams
from fts.params.types import ModelParams as ModelParams
from fts.params.types import PenaltyParams as PenaltyParams
from fts.params.types import ProjectedParams as ProjectedParams
from fts.params.types import PySINDyParams as PySINDyParams
from fts.params.types import Reported as Reported
from fts.params.types import Rule as Rule
from fts.params.types import Settings as Settings
from fts.params.types import StrongSTLSQParams as StrongSTLSQParams
from fts.params.types import StrongSTRidgeParams as StrongSTRidgeParams
from fts.params.types import SVWSParams as SVWSParams
from fts.params.types import TrainingParams as TrainingParams
from fts.params.types import WeakParams as WeakParams
from fts.params.types import changed as changed
from fts.params.types import named as named
