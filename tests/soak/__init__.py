"""Long trials, run by `make soak`; the tests take a short selection of each."""
