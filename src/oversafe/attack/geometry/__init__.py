"""Attacks on interpolated rows: ReconSMOTE, DistinSMOTE and what they are made of."""
