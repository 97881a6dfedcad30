"""What each method does, promises and does not promise, in words for whoever has to choose."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from oversafe.protect.registry import method_class


@dataclass(frozen=True)
class Explanation:
    """A method in plain words.

    Parameters
    ----------
    does : str
        What comes out.
    promises : str
        What holds whatever an outsider knows, or that nothing does.
    does_not : str
        What one might expect of it and must not.
    """

    does: str
    promises: str
    does_not: str


_SMOTE = Explanation(
    "Keeps every real row and adds rows on straight lines between neighbours of the smaller classes.",
    "Nothing.",
    "It hides nobody: the real rows are in the release, and the added rows alone can be followed back to "
    "real records (oversafe audit shows it).",
)
_COUNTED = (
    "Differential privacy with the given epsilon for every record, if the schema declares public ranges and "
    "categories or domains='private' pays for them; otherwise the figure is nominal."
)
_NETWORK = Explanation(
    "A fully synthetic table from a neural network of another project, whose licence (BUSL-1.1) restricts some "
    "commercial use; for comparisons.",
    "Nothing: the network is trained without noise.",
    "It can repeat what it has seen, above all rare records.",
)
EXPLANATIONS: Mapping[str, Explanation] = {
    "mixture": Explanation(
        "A fully synthetic table from a mixture model that is fitted to noisy counts of columns, of columns within "
        "the classes and, where the rows suffice, of all pairs of columns.",
        _COUNTED,
        "It keeps no relation that only three columns together show, and a class of a few dozen rows is drawn mostly "
        "from what the other classes look like.",
    ),
    "aim": Explanation(
        "A fully synthetic table from a graphical model fitted to noisy tables: every column with the label, and "
        "those pairs of columns that the model did not know before.",
        _COUNTED,
        "It keeps no relation that it did not choose to measure, and no pair of columns with very many values.",
    ),
    "mst": Explanation(
        "A fully synthetic table from a graphical model fitted to noisy tables: every column with the label, and "
        "a tree of pairs of columns.",
        _COUNTED,
        "It keeps no relation beyond those of the tree.",
    ),
    "gem": Explanation(
        "A fully synthetic table from a neural network that is trained on noisy tables: every column, every column "
        "within the classes and, where the rows suffice, those combinations of three columns (the label may be one) "
        "that it got most wrong before.",
        _COUNTED,
        "It keeps no relation of four columns, and combinations are measured in groups of values, as fine as the rows "
        "allow.",
    ),
    "histograms": Explanation(
        "A fully synthetic table; each column is drawn by itself from a noisy histogram within the class.",
        "Differential privacy with the given epsilon for every record, if the schema declares public ranges "
        "and categories; otherwise the figure is nominal.",
        "It keeps no relation among the columns of one class.",
    ),
    "privbayes": Explanation(
        "A fully synthetic table; each column is drawn given the class and up to degree other columns, from noisy "
        "counts; which columns is chosen with noise too.",
        "Differential privacy with the given epsilon (and delta) for every record, if the schema declares public "
        "ranges and categories; otherwise the figure is nominal.",
        "It keeps no relation that the network leaves out, and of a class with few rows little more than each "
        "column by itself.",
    ),
    "dpgan": Explanation(
        "A fully synthetic table from a neural network that starts from noisy margins of the columns within the "
        "classes and learns from a second one, which sees the rows through noisy gradients.",
        _COUNTED,
        "At a small epsilon it learns little beyond the margins; the methods that count are better on most tables.",
    ),
    "pategan": Explanation(
        "A fully synthetic table from a neural network that starts from noisy margins of the columns within the "
        "classes and learns from noisy votes of teachers, each of which sees rows of its own.",
        _COUNTED,
        "At a small epsilon it learns little beyond the margins; the methods that count are better on most tables.",
    ),
    "private-smote": Explanation(
        "Rows whose quasi-identifiers fewer than k_anonymity rows share are replaced by noisy mixtures of their "
        "neighbours; the other rows stay as they are.",
        "No released number of a replaced row in a continuous column equals its source. Nothing else is proven.",
        "Epsilon is a noise level and not differential privacy: the noise depends on the data, the choice of rows "
        "too, the rows that are kept are published unchanged, and so are all labels. In tables of precise numbers "
        "an epsilon of 5 or more leaves people linkable.",
    ),
    "gaussian-copula": Explanation(
        "A fully synthetic table with each class's own distributions and rank correlations.",
        "Nothing: the model is fitted without noise.",
        "It keeps no relation that is not monotone, and rows of a small class may lie close to real ones.",
    ),
    "bayesian-network": Explanation(
        "A fully synthetic table; each column is drawn given a few others, from counts of the real rows.",
        "Nothing: the counts carry no noise.",
        "It does not hide rare combinations: one that a single record has can come out again.",
    ),
    "nhs-sanitizer": Explanation(
        "Real rows: outliers capped, rare categories merged, quasi-identifiers made coarser, rows with rare "
        "combinations left out.",
        "Every released combination of the quasi-identifiers is shared by at least k_anonymity rows.",
        "It bounds nothing for an outsider who knows other columns, and leaves out the rare, who may be the "
        "minority class.",
    ),
    "k-anonymizer": Explanation(
        "Real rows whose quasi-identifiers are replaced by those of a group of at least k_anonymity rows.",
        "k-anonymity for the quasi-identifiers; l-diversity and t-closeness of the sensitive column when asked for.",
        "It bounds nothing for an outsider who knows other columns, and two such releases together may single "
        "people out.",
    ),
    "smote-dp": Explanation(
        "A fully synthetic table: a synthesizer under differential privacy learns rows that SMOTE drew between "
        "neighbours.",
        "With public class sizes (class_sizes) the epsilon of the whole is stated, and with run_at='proven' kept; the "
        "synthesizer's own epsilon is nominal.",
        "SMOTE before a private method does not save budget: one record changes many of its rows.",
    ),
    "umap-smotenc": Explanation(
        "A fully synthetic table; rows are made on lines in an embedding of the table and projected back.",
        "No row of the release is a real one. Nothing else is proven.",
        "Nothing bounds what one record changes in the result; the attacks on SMOTE's straight lines find nothing "
        "in it, which is a measurement and not a guarantee.",
    ),
    "ctgan": _NETWORK,
    "tvae": _NETWORK,
    "copulagan": _NETWORK,
    "smote": _SMOTE,
    "smotenc": _SMOTE,
    "borderline-smote": _SMOTE,
    "adasyn": _SMOTE,
    "svm-smote": _SMOTE,
    "kmeans-smote": _SMOTE,
    "random-over": Explanation(
        "Keeps every real row and repeats rows of the smaller classes.",
        "Nothing.",
        "It hides nobody: the release is the table, with some rows several times.",
    ),
    "random-under": Explanation(
        "Keeps some of the real rows of the larger classes and all of the smallest.",
        "Nothing.",
        "It hides nobody: the release consists of real rows.",
    ),
}


def explain(method: str) -> str:
    """Return what a method does, promises and does not promise, and the settings it takes."""
    kind = method_class(method)
    known = EXPLANATIONS.get(method)
    lines = [f"{method} ({kind.__name__})", ""]
    if known is None:
        lines += [(inspect.getdoc(kind) or kind.__name__).partition("\n\n")[0]]
    else:
        lines += [f"What it does: {known.does}", ""]
        lines += [f"What it promises: {known.promises}", ""]
        lines += [f"What it does not promise: {known.does_not}"]
    settings = [
        f"{name}={parameter.default!r}"
        for name, parameter in inspect.signature(kind).parameters.items()
        if name not in ("schema", "random_state", "n_jobs", "ledger")
    ]
    lines += ["", "Settings (change one with --set NAME=VALUE): " + ", ".join(settings)]
    return "\n".join(lines)
