"""What needs hardware, played by one process per laboratory: `python -m berkelium_lab.hardware`.

Three parts watch the API server and act only while the deployment gives them a running pod, so that a wrong selector,
toleration or gate shows in the laboratory as it would on hardware:

- node-feature-discovery: NodeFeature objects per worker pod, and the real nfd-master per master pod (`nfd_*.py`);
- the DRA drivers of NVIDIA and AMD: ResourceSlices per kubelet-plugin pod (`nvidia*.py`, `amd.py`);
- the AMD GPU operator: DeviceConfig to DaemonSets, per controller-manager pod (`amd_operator*.py`).

What a driver publishes is computed by pure functions (`nvidia.py`, `amd.py`, `nfd.py`, `amd_operator.py`); the
`*_controller.py` modules compare it with what the API server holds.
"""
