"""cleat trains neural networks on any OpenCL card: this package is its library and its program for Python.

    import cleat

    run = cleat.train("image_fashion", data={"images": images, "labels": labels}, out="runs/mine")
    found = cleat.predict(run, new_images)

train, predict and evaluate take arrays, DataFrames or paths; plan and devices show what fits where; cleat.sklearn has
estimators. Messages of the library go to the logger "cleat". Failures raise cleat.Error."""
from ._library import Error, Status, version as __version__
from ._program import devices, generate, plan
from ._run import Run, evaluate, predict, train

__all__ = ["Error", "Run", "Status", "__version__", "devices", "evaluate", "generate", "plan", "predict", "train"]
