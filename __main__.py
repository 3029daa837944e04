"""The Pulumi program: settings in, cluster out."""

import pulumi

from berkelium_infra.cluster import Cluster
from berkelium_infra.errors import UserError
from berkelium_infra.settings import load

try:
    Cluster(load()).export()
except UserError as error:
    # Pulumi shows this one without a traceback.
    raise pulumi.RunError(str(error)) from None
