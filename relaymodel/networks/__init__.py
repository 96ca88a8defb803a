"""Real networks: the two-prompt measurement, run on transformers in NumPy and on models of the transformers library.

`transformer` is a pre-LN transformer in float64, `protocol` the measurement, `huggingface` the adapter for trained
models, `calibration` the prediction for untrained ones.
"""
