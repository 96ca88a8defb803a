"""The forgetting curve of an untrained network from its weights alone: strengths read off, nothing fitted."""

from relaymodel.networks.calibration.prediction import Calibration, LayerStrengths, calibrate

__all__ = ["Calibration", "LayerStrengths", "calibrate"]
