"""What a change of the program does to a cluster, tried on a throw-away lab: `berkelium preview`.

revision   which revision is compared with, and its files without touching the work tree
trees      the two states of the project as the lab applies them
bench      apply a tree to the lab, wait until its effects have come to rest, look
snapshot   every object of the lab without what is generated
pools      the devices that the drivers publish
compare    two snapshots
workloads  the documented manifests, tried in both states
session    all of it in order
text, markdown   for a terminal, for a comment on a pull request
"""
