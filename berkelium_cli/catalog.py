"""`berkelium catalog`: what the cluster has, as tables, and claims derived from it."""

import json

import click
import yaml

from berkelium_infra import catalog as data
from berkelium_infra import claims, tables

SECTIONS = {
    "models": (tables.models,),
    "classes": (tables.classes, tables.selectors),
    "mig": (tables.mig_overview, tables.mig),
    "nvlink": (tables.nvlink,),
}


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print every table as JSON.")
@click.option("--markdown", is_flag=True, help="Print every table as Markdown.")
@click.pass_context
def catalog(ctx: click.Context, as_json: bool, markdown: bool) -> None:
    """GPU models, device classes, MIG profiles and NVLink domains.

    \b
    Examples:
      berkelium catalog                     every table
      berkelium catalog mig                 the MIG profiles
      berkelium catalog classes --json      the device classes, for a script
      berkelium catalog nvlink-claim        a claim for four GPUs of one NVLink domain, on any fleet
    """
    if ctx.invoked_subcommand is None:
        _print([make for section in SECTIONS.values() for make in section], as_json, markdown)


def _section(name: str) -> click.Command:
    makers = SECTIONS[name]

    @click.command(name, help=f"{makers[0]().title} of the cluster.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @click.option("--markdown", is_flag=True, help="Print Markdown.")
    def command(as_json: bool, markdown: bool) -> None:
        _print(list(makers), as_json, markdown)

    return command


for _name in SECTIONS:
    catalog.add_command(_section(_name))


def _print(makers: list, as_json: bool, markdown: bool) -> None:
    made = [make() for make in makers]
    if as_json:
        click.echo(json.dumps({table.title: table.records() for table in made}, indent=2))
    elif markdown:
        click.echo("\n".join(f"## {table.title}\n\n{table.markdown()}" for table in made), nl=False)
    else:
        _print_terminal(made)


def _print_terminal(made: list[tables.Table]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for table in made:
        shown = Table(*table.columns, title=table.title, title_justify="left")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)


@catalog.command("nvlink-claim")
@click.option("--model", "key", default="h200", show_default=True, help="Label of the GPU model.")
@click.option("--count", default=4, show_default=True, type=click.IntRange(min=1), help="GPUs in one NVLink domain.")
@click.option("--name", help="Name of the claim template; made from model and count by default.")
@click.option("--namespace", default="my-project", show_default=True)
@click.option(
    "--domain",
    "overrides",
    multiple=True,
    metavar="NAME=ROOT[,ROOT…]",
    help="PCIe roots of a domain where your nodes differ from the catalog; repeat for each domain.",
)
def nvlink_claim(key: str, count: int, name: str | None, namespace: str, overrides: tuple[str, ...]) -> None:
    """A claim template for GPUs of one NVLink domain that holds on every fleet.

    The documented form asks for an attribute that only Berkelium's nodes publish. This one also knows the host
    bridges behind each domain, so it schedules with the upstream driver too, and is an error on no device.

    \b
    Examples:
      berkelium catalog nvlink-claim | kubectl apply -f -
      berkelium catalog nvlink-claim --count 2
      berkelium catalog nvlink-claim --domain pci0000=pci0000:16,pci0000:27 --domain pci0001=pci0000:98,pci0000:a8
    """
    try:
        model = data.model(key)
    except KeyError as error:
        raise click.BadParameter(str(error.args[0]), param_hint="--model") from None
    if not model.nvlink_domains and not overrides:
        known = ", ".join(m.key for m in data.MODELS if m.nvlink_domains)
        raise click.BadParameter(
            f"{model.title} nodes have no separate NVLink domains ({known} does)", param_hint="--model"
        )
    domains = [_domain(text) for text in overrides] or list(model.nvlink_domains)
    largest = max(len(domain.gpus) for domain in domains)
    if count > largest:
        raise click.BadParameter(f"an NVLink domain of {model.title} has {largest} GPUs", param_hint="--count")
    template = claims.nvlink_claim_template(
        model, name or f"{key}-{count}gpu-one-nvlink-domain", namespace, count, domains
    )
    click.echo(yaml.dump(template, Dumper=_Literal, sort_keys=False, width=120), nl=False)


def _domain(text: str) -> data.NvlinkDomain:
    name, separator, roots = text.partition("=")
    found = tuple(root.strip() for root in roots.split(",") if root.strip())
    if not (name and separator and found):
        raise click.BadParameter(f"{text!r} is not of the form NAME=ROOT[,ROOT…]", param_hint="--domain")
    # Two GPUs may share a host bridge, so roots alone do not bound the domain's size: take the model's usual four.
    return data.NvlinkDomain(name, tuple(range(max(4, len(found)))), found)


class _Literal(yaml.SafeDumper):
    """Writes texts of several lines as blocks, so that a CEL expression stays readable."""


_Literal.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)
