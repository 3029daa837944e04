"""Weakened copies of the policies: each lacks one clause or one pattern that a sample must miss."""

from collections.abc import Iterator
from dataclasses import dataclass

from berkelium_infra.policy_source import compose
from berkelium_infra.policy_source.parts import Letter, Parts, Pattern
from tests.lab.policies.world import Object

NEVER = r"[^\s\S]"
"""Matches nothing."""


@dataclass(frozen=True)
class Mutant:
    """A policy without one clause."""

    policy: str
    clause: str
    manifest: Object


@dataclass(frozen=True)
class Edit:
    """In the expression of a variable (or of `validation`, `conditions`, `rules`), one text instead of another."""

    clause: str
    place: str
    old: str
    new: str


REQUIRE_RESOURCES = (
    Edit("init containers are asked", "containers", "variables.initContainers + ", ""),
    Edit("requests.cpu is asked", "fields", "'requests.cpu', ", ""),
    Edit("requests.memory is asked", "fields", "'requests.memory', ", ""),
    Edit("limits.cpu is asked", "fields", "'limits.cpu', ", ""),
    Edit("limits.memory is asked", "fields", ", 'limits.memory'", ""),
    Edit("all containers are asked, not any", "validation", "== 0", "< size(variables.stated)"),
    Edit("absent maps are no error", "stated", "c.?resources.?limits[?'cpu'].orValue('')", "c.resources.limits['cpu']"),
    Edit("zero is refused", "zero", "quantity('0')", "quantity('-1')"),
    Edit("what a LimitRange filled in is refused", "problems", " + variables.filled", ""),
    Edit("other resources of a LimitRange are not asked", "filled", "(cpu|memory)", "([a-z-]+)"),
    Edit(
        "the containers of a pod with resources are asked",
        "validation",
        "variables.unchanged",
        "has(variables.template.spec.resources)",
    ),
)
NO_IDLE_GPU = (
    Edit("claims count", "holding", "size(c.?resources.?claims.orValue([])) > 0 ||", "false ||"),
    Edit("limits count", "holding", "quantity(string(c.resources.limits[k])).isGreaterThan(quantity('0'))", "false"),
    Edit("NVIDIA's resources count", "holding", r"nvidia\.com/|", ""),
    Edit("AMD's resources count", "holding", r"amd\.com/gpu|", ""),
    Edit("the resources of device classes count", "holding", r"|deviceclass\.resource\.kubernetes\.io/", ""),
    Edit("other resources do not count", "holding", r"^(?:nvidia\.com/", r"^(?:cpu|nvidia\.com/"),
    Edit("a limit of zero does not count", "holding", "quantity('0')", "quantity('-1')"),
    Edit("sidecars count", "candidates", " + variables.initContainers", ""),
    Edit(
        "a claim that nobody uses counts",
        "orphaned",
        "exists(n, n.name == r.name)))",
        "exists(n, n.name == r.name)) && false)",
    ),
    Edit("what an init container used counts", "orphaned", "size(variables.holding) > 0", "false"),
    Edit("bare pods are left alone", "conditions", "exists(o, o.?controller.orValue(false))", "all(o, true)"),
    Edit("pods of controllers are asked", "conditions", "exists(o, o.?controller.orValue(false))", "exists(o, false)"),
    Edit(
        "pause images are known", "suspected", "variables.holders.exists(c, ", "variables.holders.exists(c, false && "
    ),
    Edit("terminals are seen", "onTerminal", "c.?tty.orValue(false) || c.?stdin.orValue(false)", "false"),
    Edit("comments are dropped", "opened", "w.startsWith('#') ? '' :", ""),
    Edit("quoted separators are blanked", "opened", "i == 0 || !k[i - 1].matches(", "false && !k[i - 1].matches("),
    Edit("scripts in scripts are opened", "opened", "i == 0 || !k[i - 1].matches(", "true || !k[i - 1].matches("),
    Edit("here-documents for Python are read", "opened", "' -c ' + ", "'' + ''.replace('', '') + ' ' + "),
    Edit("the arguments of a shell are read", "lines", "!w.contains('\"$@\"') ? w :", "true ? w :"),
    Edit("an hour is the limit", "letters", ">= 3600.0", ">= 36000000.0"),
    Edit("less than an hour is no hold", "letters", ">= 3600.0", ">= 300.0"),
    Edit("operands add up", "letters", ".sum() >= 3600.0", ".max() >= 3600.0"),
    Edit("the background is told from the foreground", "rows", "(p[0].endsWith('&') ? '&' : '')", "''"),
    Edit("groups are told from one another", "rows", ".matches(r'[({]') ? '(' : '')", ".matches(r'[({]') ? '' : '')"),
    Edit("functions in the background do not count", "rows", "? 'n' : '')", "? '' : '')"),
    Edit("a loop that counts is seen", "rows", "'F C) ', 't q '", "'F C) ', 'u q '"),
    Edit("an endless part in the background is seen", "shapes", "b == 'e& ' ? 'y& '", "b == 'e& ' ? 'z& '"),
    Edit("an hour in the background is seen", "shapes", "b == 'l& ' ? 'k& '", "b == 'l& ' ? 'z& '"),
    Edit("an endless group in the background is seen", "shapes", "? 'y' :", "? 'z' :"),
)
RULES = (
    ("pods are asked", lambda rules: [rule for rule in rules if rule["resources"] != ["pods"]]),
    ("templates are asked", lambda rules: [rule for rule in rules if rule["resources"][0].startswith("pods")]),
)


def mutants() -> Iterator[Mutant]:
    """Every policy without each of its clauses, and without each of its patterns."""
    for policy, edits in (("require-resources", REQUIRE_RESOURCES), ("no-idle-gpu", NO_IDLE_GPU)):
        yield from (Mutant(policy, edit.clause, _edited(policy, edit)) for edit in edits)
        for clause, weaken in RULES:
            manifest = compose.manifests(policy)[0]
            constraints = manifest["spec"]["matchConstraints"]
            constraints["resourceRules"] = weaken(constraints["resourceRules"])
            yield Mutant(policy, clause, manifest)
        if parts := compose.parts_of(policy):
            yield from (Mutant(policy, clause, compose.manifests(policy, less)[0]) for clause, less in _without(parts))


def _edited(policy: str, edit: Edit) -> Object:
    manifest = compose.manifests(policy)[0]
    spec = manifest["spec"]
    entries = {"validation": spec["validations"], "conditions": spec["matchConditions"]}.get(edit.place)
    entries = entries or [variable for variable in spec["variables"] if variable["name"] == edit.place]
    assert any(edit.old in entry["expression"] for entry in entries), f"{edit.clause}: {edit.old!r} is not there"
    for entry in entries:
        entry["expression"] = entry["expression"].replace(edit.old, edit.new)
    return manifest


def _without(parts: Parts) -> Iterator[tuple[str, Parts]]:
    for group in ("letters", "programs"):
        letters: tuple[Letter, ...] = getattr(parts, group)
        for letter in letters:
            for pattern in letter.patterns:
                patterns = tuple(_dead(each) if each is pattern else each for each in letter.patterns)
                less = letter.model_copy(update={"patterns": patterns})
                changed = tuple(less if each is letter else each for each in letters)
                yield f"{group}: {letter.letter} {pattern.name}", parts.model_copy(update={group: changed})
    for shape in parts.shapes:
        changed = tuple(_dead(each) if each is shape else each for each in parts.shapes)
        yield f"shape: {shape.name}", parts.model_copy(update={"shapes": changed})


def _dead(pattern: Pattern) -> Pattern:
    return pattern.model_copy(update={"pattern": NEVER})
