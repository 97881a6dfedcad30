"""``oversafe app``: the local web page."""

from __future__ import annotations

from typing import Annotated

import typer


def web_page(
    port: Annotated[int | None, typer.Option(help="Of this machine's loopback address; a free one.")] = None,
    max_size: Annotated[int, typer.Option(help="Megabytes that a file may have.")] = 200,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open a page on this machine: drop a table, audit or protect it, download the result.

    It listens on the loopback address alone, sends nothing, and keeps nothing when it ends.

    Examples:  oversafe app   |   oversafe app --port 9000 --max-size 500 --no-browser
    """
    import webbrowser

    from oversafe.app.server import serve

    def tell(address: str) -> None:
        typer.echo(f"The page is at {address}; end it with Ctrl-C.")
        if browser:
            webbrowser.open(address)

    if code := serve(port, max_size, on_start=tell):
        raise typer.Exit(code)
