"""``oversafe account``: what oversampling and bagging leave of a guarantee."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from oversafe._core.errors import InputError
from oversafe.cli.consoles import console, in_options
from oversafe.cli.options import JsonOption, number_option

account_app = typer.Typer(
    help="What oversampling or bagging leaves of a mechanism's guarantee, or what the mechanism must run at.",
    short_help="What oversampling or bagging costs of a guarantee.",
    no_args_is_help=True,
)

EpsilonOption = Annotated[
    float | None, number_option("The mechanism's epsilon; with --whole that of the whole.")
]
WholeOption = Annotated[
    bool,
    typer.Option("--whole", help="Say what the mechanism must run at so that the whole has this epsilon."),
]
MinorityOption = Annotated[
    list[int],
    typer.Option(
        help="Records that the oversampled class surely has, a public number; again for each further class."
    ),
]
AddedOption = Annotated[list[int], typer.Option(help="Rows added to it; again for each further class.")]
DeltaOption = Annotated[float, number_option("At which the whole's epsilon is stated.")]
MechanismDeltaOption = Annotated[float, number_option("The mechanism's own delta.")]
NoiseOption = Annotated[
    float | None,
    number_option("Instead of --epsilon: the mechanism is Gaussian noise of this multiplier."),
]
RelationOption = Annotated[str, typer.Option(help="Neighbouring tables: replace-one or add-remove.")]


@account_app.command("smote")
def account_smote(
    minority: MinorityOption,
    added: AddedOption,
    dimensions: Annotated[int, typer.Option(help="Columns in which distances are measured.")],
    epsilon: EpsilonOption = None,
    neighbors: Annotated[int, typer.Option(help="SMOTE's number of neighbours.")] = 5,
    delta: DeltaOption = 0.0,
    mechanism_delta: MechanismDeltaOption = 0.0,
    noise_multiplier: NoiseOption = None,
    relation: RelationOption = "replace-one",
    bases: Annotated[str, typer.Option(help="The record a row starts from: random or cyclic.")] = "random",
    unstable_ties: Annotated[
        bool, typer.Option("--unstable-ties", help="The rows come from imbalanced-learn, on data with ties.")
    ] = False,
    whole: WholeOption = False,
    json_output: JsonOption = False,
) -> None:
    """What is left of a private mechanism's epsilon when SMOTE has added rows before it.

    Examples:  oversafe account smote --epsilon 1 --dimensions 25 --neighbors 5 --added 1000 --minority 100   |
    oversafe account smote --whole --epsilon 1 --delta 1e-6 --dimensions 25 --added 1000 --minority 100
    """
    from oversafe.privacy.costs.oversampling import smote_budget, smote_cost, smote_group_sizes

    if dimensions < 1:
        raise InputError(f"--dimensions {dimensions} was given; it counts columns, so give at least 1")
    settings = _sizes(minority, added) | {
        "dimensions": dimensions,
        "k_neighbors": neighbors,
        "relation": relation,
        "bases": bases,
        "stable_ties": not unstable_ties,
    }
    inside: dict[str, Any] = {"delta": mechanism_delta, "target_delta": delta}
    if whole:
        epsilon = smote_budget(_needed(epsilon, noise_multiplier), **inside, **settings)
    guarantee = smote_cost(epsilon, noise_multiplier=noise_multiplier, **inside, **settings)
    _show(
        guarantee,
        epsilon,
        noise_multiplier,
        delta,
        smote_group_sizes(**settings),
        settings,
        whole,
        json_output,
    )


@account_app.command("oversampling")
def account_oversampling(
    minority: MinorityOption,
    added: AddedOption,
    epsilon: EpsilonOption = None,
    delta: Annotated[
        float | None, number_option("At which the whole's epsilon is stated; by default what is needed.")
    ] = None,
    mechanism_delta: MechanismDeltaOption = 0.0,
    noise_multiplier: NoiseOption = None,
    relation: RelationOption = "replace-one",
    bases: Annotated[str, typer.Option(help="The records that are repeated: cyclic or random.")] = "cyclic",
    whole: WholeOption = False,
    json_output: JsonOption = False,
) -> None:
    """What is left of a private mechanism's epsilon when minority records were repeated before it.

    Examples:  oversafe account oversampling --epsilon 1 --added 900 --minority 100   |   oversafe account oversampling
    --epsilon 1 --added 900 --minority 100 --bases random --delta 1e-6
    """
    from oversafe.privacy.costs.oversampling import (
        oversampling_budget,
        oversampling_cost,
        oversampling_group_sizes,
    )

    settings = _sizes(minority, added) | {"relation": relation, "bases": bases}
    inside: dict[str, Any] = {"delta": mechanism_delta}
    if whole:
        wanted = _needed(epsilon, noise_multiplier)
        epsilon = oversampling_budget(wanted, target_delta=delta or 0.0, **inside, **settings)
    guarantee = oversampling_cost(
        epsilon, noise_multiplier=noise_multiplier, target_delta=delta, **inside, **settings
    )
    sizes = oversampling_group_sizes(**settings)
    _show(guarantee, epsilon, noise_multiplier, delta or 0.0, sizes, settings, whole, json_output)


@account_app.command("bagging")
def account_bagging(
    estimators: Annotated[int, typer.Option(help="The number of learners.")],
    records: Annotated[int, typer.Option(help="Records of the table.")],
    epsilon: Annotated[
        float | None,
        number_option(
            "Each learner's epsilon, with --whole the ensemble's; none for learners without privacy."
        ),
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Size of a sample; all records when not given.")] = None,
    delta: DeltaOption = 0.0,
    mechanism_delta: Annotated[float, number_option("Each learner's own delta.")] = 0.0,
    split: Annotated[str, typer.Option(help="bootstrap, subsample, disjoint or stratified.")] = "bootstrap",
    relation: RelationOption = "replace-one",
    whole: WholeOption = False,
    json_output: JsonOption = False,
) -> None:
    """What an ensemble promises whose learners see samples of one table.

    Examples:  oversafe account bagging --epsilon 0.1 --estimators 10 --records 10000 --delta 1e-6   |
    oversafe account bagging --epsilon 1 --estimators 10 --records 10000 --split disjoint
    """
    from oversafe.privacy.costs.bagging import bagging_budget, bagging_cost

    settings: dict[str, Any] = {
        "n_estimators": estimators,
        "n_records": records,
        "n_samples": samples,
        "split": split,
        "relation": relation,
        "delta": mechanism_delta,
        "target_delta": delta,
    }
    if whole:
        epsilon = bagging_budget(_needed(epsilon, None), **settings)
    guarantee = bagging_cost(epsilon, **settings)
    facts = {} if epsilon is None else {"epsilon of each learner on its sample": f"{epsilon:.6g}"}
    if guarantee.epsilon is None:
        sentence = str(guarantee)
    elif epsilon is None:
        sentence = (
            f"A record is used by at least one learner with probability {guarantee.delta:.3g}, and then without any "
            "protection; otherwise it leaves no trace."
        )
    else:
        sentence = (
            f"Whoever has the whole ensemble learns of one record what an epsilon = {guarantee.epsilon:.4g} mechanism "
            f"would tell{_but_for(guarantee.delta)}; each learner has epsilon = {epsilon:.4g} on "
            "the sample that it is given."
        )
    _print(guarantee, facts, sentence, settings | {"epsilon": epsilon}, json_output)


def _sizes(minority: list[int], added: list[int]) -> dict[str, Any]:
    for option, values in (("--minority", minority), ("--added", added)):
        if min(values) < 0:
            raise InputError(f"{option} {min(values)} was given; it counts rows, so give at least 0")
    if len(minority) != len(added):
        raise InputError(
            f"--minority was given {len(minority)} times and --added {len(added)} times; give both for each class"
        )
    if len(minority) == 1:
        return {"n_minority": minority[0], "n_added": added[0]}
    return {"n_minority": dict(enumerate(minority)), "n_added": dict(enumerate(added))}


def _needed(epsilon: float | None, noise_multiplier: float | None) -> float:
    if epsilon is None or noise_multiplier is not None:
        raise InputError(
            "--whole needs --epsilon and no --noise-multiplier; give the epsilon that the whole shall have"
        )
    return epsilon


def _show(
    guarantee: Any,
    epsilon: float | None,
    noise_multiplier: float | None,
    delta: float,
    sizes: list[Any],
    settings: dict[str, Any],
    whole: bool,
    json_output: bool,
) -> None:
    inside = f"noise multiplier = {noise_multiplier:.4g}" if epsilon is None else f"epsilon = {epsilon:.4g}"
    expected, most = max(s.mean for s in sizes), max(s.largest for s in sizes)
    facts = {"the mechanism runs at": inside, "rows that one record changes, on average": f"{expected:.4g}"}
    if delta:
        facts[f"... more only with probability {delta:g}"] = f"{max(s.quantile(delta) for s in sizes):,}"
    facts["... at most"] = f"{most:,}"
    told = f"epsilon = {guarantee.epsilon:.4g}{_but_for(guarantee.delta)}"
    sentence = (
        f"For the whole to have {told}, the mechanism must run at {inside} on the oversampled table."
        if whole
        else f"A mechanism of {inside} on the oversampled table protects a record as {told} would on the table itself."
    )
    figures = {"epsilon": epsilon, "noise_multiplier": noise_multiplier, **settings}
    rows = {"mean": expected, "largest": most}
    _print(guarantee, facts, sentence, figures, json_output, rows)


def _but_for(delta: float | None) -> str:
    return f" (but for a probability of {delta:.3g})" if delta else ""


def _print(
    guarantee: Any,
    facts: dict[str, str],
    sentence: str,
    settings: dict[str, Any],
    json_output: bool,
    changed_rows: dict[str, Any] | None = None,
) -> None:
    if json_output:
        plain = {"settings": settings, "guarantee": guarantee.to_dict(), "meaning": sentence}
        typer.echo(json.dumps(plain | ({"changed_rows": changed_rows} if changed_rows else {}), indent=2))
        return
    from rich.table import Table

    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in facts.items():
        table.add_row(name, value)
    if guarantee.epsilon is not None:
        table.add_row("epsilon of the whole", f"{guarantee.epsilon:.6g}")
        table.add_row("delta of the whole", f"{guarantee.delta:.3g}")
    table.add_row("neighbouring tables", settings["relation"])
    table.add_row("status", guarantee.status)
    out = console()
    out.print(table)
    out.print(sentence, markup=False, highlight=False)
    if guarantee.caveats and guarantee.status != "none":
        start = "It holds if " if guarantee.status == "proven" else "It is not proven: "
        caveats = in_options("; ".join(guarantee.caveats))
        out.print(f"{start}{caveats}.", markup=False, highlight=False)
