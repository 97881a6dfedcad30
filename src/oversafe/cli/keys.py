"""The command line's part for signing keys: ``oversafe keys``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from oversafe._core.errors import InputError
from oversafe.cli.options import JsonOption

if TYPE_CHECKING:
    from oversafe.privacy.signing.keys import KnownKey

keys_app = typer.Typer(
    help="Your key, which signs releases, and the keys of others whose word counts in your audits.",
    short_help="Sign releases, and say whose word counts.",
    no_args_is_help=True,
)


@keys_app.command("create")
def create(
    name: Annotated[
        str, typer.Option(help="Who you are to those who get your releases, such as 'Ward 7, Lyon'.")
    ],
    json_output: JsonOption = False,
) -> None:
    """Make your signing key, or give a name to the one that was made on first use.

    Examples:  oversafe keys create --name 'Ward 7, Lyon'   |   oversafe keys create --name 'Ann Lee' --json
    """
    from oversafe.privacy import Keys

    keys = Keys()
    keys.own_or_new(name)
    _show([key for key in keys.known() if key.status == "own"], json_output)


@keys_app.command("show")
def show(json_output: JsonOption = False) -> None:
    """Show your public key and its fingerprint, and whom you trust and distrust.

    Examples:  oversafe keys show   |   oversafe keys show --json
    """
    from oversafe.privacy import Keys

    keys = Keys()
    known = keys.known()
    _show(known, json_output)
    if not json_output and keys.own() is None:
        typer.echo(
            "You have no key yet; it is made with your first release, or by: oversafe keys create --name NAME"
        )


@keys_app.command("trust")
def trust(
    name: Annotated[str, typer.Argument(help="What you call the holder.")],
    key: Annotated[
        str,
        typer.Argument(
            metavar="PUBLIC_KEY_OR_FILE", help="The key, a file that holds it, or a manifest that it signed."
        ),
    ],
    fingerprint: Annotated[
        str | None,
        typer.Option(
            help="As its holder told you by another channel, such as the telephone; asked for if not given."
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Let the guarantees count that a key signs, after comparing its fingerprint.

    Examples:  oversafe keys trust 'Ward 7' release.csv.manifest.json   |   oversafe keys trust 'Ward 7' key.txt
    --fingerprint 'b2a7 abef 4ed2 b20e 866a b947 60ea f715'
    """
    from oversafe.privacy import Keys
    from oversafe.privacy.signing.keys import checked_holder, public_key_of

    checked_holder(name)
    public_key = public_key_of(key)
    if fingerprint is None:
        # Not shown beforehand: who can copy it does not compare it.
        try:
            fingerprint = typer.prompt("Fingerprint, as its holder told you by another channel", err=True)
        except typer.Abort:
            raise InputError(
                "no fingerprint was given, and nothing is trusted; give it with --fingerprint"
            ) from None
    _show([Keys().trust(name, public_key, fingerprint)], json_output)


@keys_app.command("distrust")
def distrust(
    who: Annotated[str, typer.Argument(help="The holder's name, the fingerprint or the public key.")],
    json_output: JsonOption = False,
) -> None:
    """Let the guarantees count no more that a key signed, also those of earlier releases.

    Examples:  oversafe keys distrust 'Ward 7'   |   oversafe keys distrust 'b2a7 abef 4ed2 b20e 866a b947 60ea f715'
    """
    from oversafe.privacy import Keys

    _show([Keys().distrust(who)], json_output)


def _show(keys: list[KnownKey], json_output: bool) -> None:
    if json_output:
        facts = [
            {
                "name": key.name,
                "status": key.status,
                "public_key": key.public_key,
                "fingerprint": key.fingerprint,
            }
            for key in keys
        ]
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    for key in keys:
        whose = {"own": "Your key", "trusted": "Trusted", "distrusted": "Distrusted"}[key.status]
        typer.echo(f"{whose}: {key.name}\n  public key   {key.public_key}\n  fingerprint  {key.fingerprint}")
