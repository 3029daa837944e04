"""Rules on projects and on what is adopted; `rules.check` asks them with the others."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from berkelium_infra.catalog import DEVICE_CLASSES, MODELS
from berkelium_infra.settings.adoption import Adopt, adoptable
from berkelium_infra.settings.faults import Fault, unknown
from berkelium_infra.settings.model import SYSTEM_NAMESPACES, Settings
from berkelium_infra.settings.projects import OTHERS, Project, classes_of


def projects(settings: Settings) -> Iterator[Fault]:
    """Faults of `projects`: names that are taken, devices that do not exist, counts that contradict each other."""
    for name, project in settings.projects.items():
        at = f"projects.{name}"
        if name in (*SYSTEM_NAMESPACES, "default", *settings.stack_namespaces):
            yield Fault(at, f"{name} is a namespace of the system or of this stack.", "Write another name.")
        if name in settings.project_namespaces:
            yield Fault(at, f"{name} stands in projectNamespaces too.", "Remove it there.")
        if name in settings.exempt_namespaces:
            yield Fault(
                at,
                f"{name} stands in exemptNamespaces; the policies are there for projects.",
                "Remove it from one of the two.",
            )
        yield from _labels(project, at)
        yield from _gpus(project, at, settings)


def _labels(project: Project, at: str) -> Iterator[Fault]:
    for label in project.labels:
        domain = label.partition("/")[0] if "/" in label else ""
        if domain == "kubernetes.io" or (domain.endswith(".kubernetes.io") and not domain.startswith("pod-security.")):
            yield Fault(f"{at}.labels.{label}", "Kubernetes itself writes labels of that domain.", "Remove it.")


def _gpus(project: Project, at: str, settings: Settings) -> Iterator[Fault]:
    gpus = project.quota.gpus
    classes = [known.name for known in (*DEVICE_CLASSES, *settings.extra_device_classes)]
    known = [*(model.key for model in MODELS), *classes, OTHERS]
    for key in gpus:
        if key not in known:
            yield unknown(f"{at}.quota.gpus.{key}", key, "GPU model or device class", known)
        elif key not in classes and (own := classes_of(key)[:1]) and own[0] in gpus:
            yield Fault(
                f"{at}.quota.gpus.{key}", f"{own[0]} is the same class and stands there too.", "Write one of them."
            )


def adoption(settings: Settings, project: Path) -> Iterator[Fault]:
    """Faults of `adopt`: names of nothing that the stack declares, and names that stand there twice."""
    declared = adoptable(settings, project)
    for field, info in Adopt.model_fields.items():
        at = f"adopt.{info.alias}"
        for name, count in Counter(getattr(settings.adopt, field)).items():
            if name not in declared[field]:
                yield unknown(at, name, "object of that kind that this stack declares", declared[field])
            elif count > 1:
                yield Fault(at, f"{name} stands there {count} times.", "Write it once.")
