"""Will this run? Manifests put to a real API server and a real scheduler, and the answer explained.

Three questions for every object, in this order: is it valid, do the policies admit it, does it get devices. The first
two are a strict server-side dry run (`admission.py`); the third is answered by creating the objects in throw-away
namespaces of a lab and reading what the scheduler made of them (`trial.py`). Only the explanations are computed here
(`explain.py`), from the ResourceSlices and with the scheduler's own CEL library.

`run.check` is the way in; `findings.py` has what comes out.
"""
