"""`berkelium recover`: after an interrupted run."""

import click

from berkelium_lab.paths import DEFAULT_LAB


def _progress(line: str) -> None:
    click.echo(line, err=True)


@click.command()
@click.option("--name", default=DEFAULT_LAB, show_default=True, help="The lab's name.")
@click.option("--config", "assignments", multiple=True, metavar="KEY=VALUE", help="A setting, over the lab's stack's.")
@click.option("--stack", metavar="STACK", help="Your own stack of this checkout, by the pulumi on the PATH, not a lab.")
@click.option("--break-lock", is_flag=True, help="The run that holds the stack's lock is dead: release it.")
@click.option("--rebuilt", is_flag=True, help="The cluster was wiped and rebuilt: from now on it is the stack's.")
def recover(name: str, assignments: tuple[str, ...], stack: str | None, break_lock: bool, rebuilt: bool) -> None:
    """Mend what an interrupted run left behind, and apply the stack.

    Releases a dead run's lock, forgets Helm revisions that were never finished, settles operations whose end was not
    recorded, imports objects that were created but not recorded, and then applies the program as `up` does. Says what
    it did. What of a lab has died is started again first. With --rebuilt everything is created again in a cluster that
    was wiped, from the stack's old state.

    \b
    Examples:
      berkelium recover
      berkelium recover --stack staging
      berkelium recover --stack staging --break-lock
      berkelium recover --stack staging --rebuilt
    """
    if stack:
        if assignments:
            raise click.UsageError("--config is for labs; the stack's file says what is applied.")
        from berkelium_lab.recovery.user_recovery import recover as recover_stack

        recover_stack(stack, _progress, break_lock=break_lock, rebuilt=rebuilt)
        return
    if break_lock:
        raise click.UsageError("--break-lock is for --stack; a lab's own runs are known, and dead ones are cleared up.")
    from berkelium_cli.lab import parse_config
    from berkelium_lab import workspace
    from berkelium_lab.lab import Lab

    lab = Lab(name)
    settings = parse_config(assignments)
    workspace.state(lab)
    lab.up(None, _progress)
    workspace.recover(lab, settings, _progress, rebuilt=rebuilt)
