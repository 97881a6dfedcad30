"""The page itself, as Streamlit runs it anew after every click."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.app.server import DEFAULT_LIMIT

_AUDIT, _PROTECT = "Audit a release", "Protect a table"
_REPORT_HEIGHT = 900
# What the field takes, not what is called protected.
_LARGEST_INPUT = 10.0
_MISTAKES = (InputError, MissingExtraError)


def main() -> None:
    """Show the page."""
    import streamlit as st

    limit = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_LIMIT
    st.set_page_config(page_title="oversafe", page_icon="🛡", layout="wide")
    st.title("oversafe")
    st.write(
        "Attack a table before anyone else does, and release it with a guarantee that holds. Everything stays on this "
        "machine and in memory; when this page is closed, it is gone."
    )
    task = st.radio("What would you like to do?", [_AUDIT, _PROTECT], horizontal=True)
    if task == _AUDIT:
        _audit(st, limit)
    else:
        _protect(st, limit)


def _audit(st: Any, limit: int) -> None:
    release = _table(st, "The table to be handed out", "release", limit)
    with st.expander("With the real table and other people the audit sees more (optional)"):
        real = _table(st, "The real table that it was made from", "real", limit)
        holdout = _table(st, "Real rows of people who had no part in it", "holdout", limit)
    if release is None:
        return
    label = _label(st, [str(name) for name in release[1].columns])
    if st.button("Audit", type="primary"):
        from oversafe.auditing import audit

        with _progress(st, "Starting") as show:
            try:
                st.session_state["audit"] = audit(
                    release[1],
                    label,
                    real=None if real is None else real[1],
                    holdout=None if holdout is None else holdout[1],
                    on_progress=show,
                    name=release[0],
                )
            except _MISTAKES as error:
                st.session_state.pop("audit", None)
                _say(st.error, error)
    if "audit" in st.session_state:
        _report(st, st.session_state["audit"], "audit")


def _protect(st: Any, limit: int) -> None:
    from oversafe.app import work
    from oversafe.data import Schema
    from oversafe.privacy.meaning import LIMITS
    from oversafe.protect.registry import explained, method_names, settings_of

    uploaded = _upload(st, "The real table", "table", limit)
    if uploaded is None:
        return
    given = st.file_uploader("What is publicly known about the columns (a schema, optional)", type=["toml"])
    try:
        schema = None if given is None else work.read_schema(given.getvalue())
    except _MISTAKES as error:
        st.session_state.pop("protected", None)
        _say(st.error, error)
        return
    table: Any = None
    if schema is None:
        table = _read(st, uploaded, "table", limit)
        if table is None:
            return
    try:
        if schema is None:
            names = [str(name) for name in table.columns]
        else:
            # With a schema nothing that the page asks, proposes or refuses depends on a row.
            names = work.columns_of_upload(uploaded.name, uploaded.getvalue(), limit, schema)
        label = _label(st, names, None if schema is None else schema.label)
        described = Schema.infer(table, label=label) if schema is None else schema
    except _MISTAKES as error:
        _say(st.error, error)
        return
    method = st.selectbox("Method", method_names())
    try:
        settings = settings_of(method)
        for line in filter(None, explained(method)):
            _say(st.write, line)
    except _MISTAKES as error:
        _say(st.error, error)
        return
    epsilon = None
    if "epsilon" in settings:
        usual = float(settings["epsilon"]) if isinstance(settings["epsilon"], int | float) else 1.0
        epsilon = st.number_input(
            "Privacy budget (epsilon)",
            0.01,
            max(_LARGEST_INPUT, usual),
            usual,
            0.1,
            help=f"Smaller is more private; 1 is strong, above {LIMITS.max_epsilon:g} is weak.",
        )
    balance = "sampling_strategy" in settings and st.checkbox("As many rows of each class")
    quasi_identifiers = None
    if "quasi_identifiers" in settings:
        quasi_identifiers = st.multiselect(
            "Columns that outsiders may know", [name for name in names if name != label]
        )
    drop = st.multiselect(
        "Columns to leave out",
        [name for name in names if name != label],
        [name for name in described.naming_columns if name in names and name != label],
    )
    if schema is None:
        st.write(
            "Without a schema the ranges are read from the data, and the guarantee is nominal. Download what the "
            "columns seem to be, correct it, and upload it here."
        )
        _download(st, "Download a schema to correct", described.to_toml(), "schema.toml", "text/plain")
    rows_per_person = None
    if schema is not None and schema.person is not None and "rows_per_person" in settings:
        rows_per_person = st.number_input(
            "Rows per person",
            1,
            value=None,
            step=1,
            help="Of each person at most so many rows are used, drawn at random; the promise is for every person.",
        )
    if st.button("Protect", type="primary"):
        st.session_state.pop("protected", None)
        notes: list[str] = []
        st.session_state["notes"] = notes
        name, content = uploaded.name, uploaded.getvalue()
        with _progress(st, f"Protecting with {method}") as show:
            try:
                protected = work.protect_upload(
                    name,
                    content,
                    limit,
                    label,
                    method=method,
                    epsilon=epsilon,
                    balance=balance,
                    schema=schema,
                    rows_per_person=rows_per_person,
                    quasi_identifiers=quasi_identifiers,
                    drop=drop,
                    on_note=notes.append,
                    on_progress=lambda step, share: show(step, share / 2),
                )
                real = table
                if schema is not None:
                    # As the schema says, so that no row decides how the others are read.
                    real = work.read_declared_upload(name, content, limit, schema, drop, label, method)
                from oversafe.auditing import audit
                from oversafe.data.io.files import FileTable

                found = audit(
                    # What was written to these bytes, so that the audit says who vouches for them.
                    FileTable(protected.release.table, "release.csv", protected.vouched.sha256),
                    label,
                    real=real[list(protected.release.table.columns)],
                    guarantee=protected.vouched,
                    name="release.csv",
                    on_progress=lambda step, share: show(step, 0.5 + share / 2),
                )
                st.session_state["protected"] = (protected, found)
            except _MISTAKES as error:
                _say(st.error, error)
    for sentence in st.session_state.get("notes", ()):
        _say(st.warning, sentence)
    if "protected" in st.session_state:
        protected, found = st.session_state["protected"]
        _say(st.info, protected.release.guarantee)
        left, right = st.columns(2)
        _download(left, "Download the release", protected.file, "release.csv", "text/csv")
        manifest = "release.csv.manifest.json"
        _download(right, "Download its guarantee", protected.manifest, manifest, "application/json")
        _report(st, found, "protected")


def _table(st: Any, title: str, key: str, limit: int) -> tuple[str, Any] | None:
    """Return an uploaded table with its name, or say what is wrong with it."""
    uploaded = _upload(st, title, key, limit)
    table = None if uploaded is None else _read(st, uploaded, key, limit)
    return None if uploaded is None or table is None else (uploaded.name, table)


def _upload(st: Any, title: str, key: str, limit: int) -> Any | None:
    """Return an uploaded file that is not read yet."""
    from oversafe.app import work

    uploaded = st.file_uploader(
        f"{title} (CSV or Parquet, up to {limit} MB)", type=list(work.ENDINGS), key=key
    )
    known = None if uploaded is None else uploaded.file_id
    if st.session_state.get(f"{key}-file") != known:
        st.session_state[f"{key}-file"] = known
        st.session_state.pop(f"{key}-table", None)
        if known is not None:
            # What was found belongs to another table now.
            for result in ("audit", "protected", "notes"):
                st.session_state.pop(result, None)
    return uploaded


def _read(st: Any, uploaded: Any, key: str, limit: int) -> Any | None:
    """Return the table in an uploaded file, or say what is wrong with it."""
    from oversafe.app import work

    table = st.session_state.get(f"{key}-table")
    if table is None:
        try:
            table = work.read_upload(uploaded.name, uploaded.getvalue(), limit)
        except _MISTAKES as error:
            _say(st.error, error)
            return None
        st.session_state[f"{key}-table"] = table
    _say(st.write, f"{len(table)} rows, {table.shape[1]} columns.")
    return table


def _label(st: Any, names: list[str], declared: str | None = None) -> str:
    place = names.index(declared) if declared in names else len(names) - 1
    return str(st.selectbox("The column that holds the class", names, index=place))


def _report(st: Any, found: Any, key: str) -> None:
    from oversafe.report.glossary import MEANING

    word, _, meaning = MEANING[found.verdict.level]
    show = {"exposed": st.error, "unproven": st.warning, "protected": st.success}[found.verdict.level]
    _say(show, f"{word}: {found.verdict.sentence} {meaning}")
    page = found.to_html()
    left, right = st.columns(2)
    _download(left, "Download the report", page, "audit.html", "text/html", f"{key}-page")
    _download(right, "Download all figures", found.to_json(), "audit.json", "application/json", f"{key}-json")
    st.iframe(page, height=_REPORT_HEIGHT)


def _download(st: Any, title: str, data: Any, name: str, kind: str, key: str | None = None) -> None:
    # The page stays as it is: to make it anew would build the report again for nothing.
    st.download_button(title, data, name, kind, key=key, on_click="ignore")


class _progress:
    """A bar that says which step runs and how long the rest will take."""

    def __init__(self, st: Any, title: str) -> None:
        self._bar = st.progress(0.0, text=title)

    def __enter__(self) -> Callable[[str, float], None]:
        from time import monotonic

        from oversafe.app.work import as_markdown

        begin = monotonic()

        def show(step: str, share: float) -> None:
            passed = monotonic() - begin
            left = f", about {passed / share * (1 - share):.0f} s left" if share > 0.1 else ""
            self._bar.progress(min(1.0, share), text=as_markdown(step) + left)

        return show

    def __exit__(self, *_: object) -> None:
        self._bar.empty()


def _say(show: Callable[[str], Any], what: object) -> None:
    """Show a sentence that may hold words of the table as text."""
    from oversafe.app.work import as_markdown

    show(as_markdown(str(what)))


if __name__ == "__main__":
    main()
