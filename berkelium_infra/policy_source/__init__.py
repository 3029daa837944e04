"""How `policies/<name>/policy.yaml` is composed from parts that are reviewed and tested one by one.

`policies/shared.yaml` holds what all policies have in common, `policies/<name>/source.yaml` the policy's own
expressions, `policies/<name>/parts/` (where there is one) its named patterns. The composed file is what is
deployed; a test holds that it is exactly what the parts compose to.
"""
