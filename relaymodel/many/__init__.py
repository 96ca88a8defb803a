"""Many models and many curves: values on grids of parameters, by any executor, resumed from a folder."""

from relaymodel.many.dataset import Dataset
from relaymodel.many.models import grid_of, sweep

__all__ = ["Dataset", "grid_of", "sweep"]
