"""Whether the components of a lab serve, asked of them over the network, and what their logs say when they do not."""

import urllib3

from berkelium_lab import processes, wait
from berkelium_lab.control_plane import Component, Site
from berkelium_lab.errors import LabError
from berkelium_lab.processes import ProcessRecord

LOG_LINES = 12


class Health:
    """Questions to the components of one lab."""

    def __init__(self, site: Site) -> None:
        self._site = site
        files = site.credentials
        # etcd takes no request without a client certificate; the others do not ask for one.
        self._pool = urllib3.PoolManager(
            ca_certs=str(files.authority),
            cert_file=str(files.etcd_certificate),
            key_file=str(files.etcd_key),
            timeout=urllib3.Timeout(connect=2, read=5),
            retries=False,
        )

    def complaint(self, component: Component) -> str | None:
        """What is wrong with a component that runs; None when it serves."""
        if component.health is None:
            return None
        url = self._site.url(component.listeners[0]) + component.health
        try:
            answer = self._pool.request("GET", url)
        except urllib3.exceptions.HTTPError as error:
            return f"{url}: {_root(error)}"
        if answer.status == 200:
            return None
        failed = [line for line in answer.data.decode(errors="replace").splitlines() if line.startswith("[-]")]
        return f"{url}: {answer.status} {'; '.join(failed)}".rstrip()

    def wait_for(self, component: Component, record: ProcessRecord, seconds: float) -> None:
        """Return once the component serves. Raises `LabError` when it ends, or does not within `seconds`."""

        def probe() -> bool:
            if processes.find(record, self._site.directory) is None:
                raise LabError(f"{component.name} ended by itself{self.explain(component)}")
            if complaint := self.complaint(component):
                raise wait.NotYet(complaint)
            return True

        try:
            wait.until(probe, f"{component.name} does not serve", seconds, interval=0.05)
        except TimeoutError as error:
            raise LabError(f"{error}{self.explain(component)}") from None

    def explain(self, component: Component) -> str:
        """The last lines of a component's log, to be put behind a complaint."""
        log = self._site.log(component.name)
        lines = processes.tail(log, LOG_LINES)
        return (
            "\n".join([f"\nLast lines of {log}:", *(f"  {line}" for line in lines)]) if lines else f" ({log} is empty)"
        )


def _root(error: BaseException) -> str:
    while error.__context__ is not None:
        error = error.__context__
    return str(error)
