"""The parts of the cluster's accelerator setup, one ComponentResource per file."""
