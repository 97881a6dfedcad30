"""The tiers of the test suite, and the services that they need.

Plain ``pytest`` runs the default tier: everything without one of the markers below. ``pytest -m MARKER`` runs
a tier, and a test named on the command line runs whatever its tier. Slow tests run only when the expression
after ``-m`` says ``slow``, so that choosing "data" does not start an hour of work.

A test whose service is missing is skipped, except where the environment has ``CI`` set: there it fails,
because a skip would look like a pass.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

TIERS = ("data", "engines", "browser", "extras", "slow")
# A skip in these tiers means that something is not installed or not running.
_SERVICE_TIERS = {"data", "engines", "browser", "extras"}
_DEFAULT = "default"

# Besides being headless and without a sandbox (for containers, where it cannot start), the browser must ask
# nothing of the network on its own, or its requests would mix with those of the page under test.
_CHROMIUM_FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

_tiers_of_tests = pytest.StashKey[dict[str, list[str]]]()


# ---------------------------------------------------------------------------------------------- choosing


def _tiers(item: pytest.Item) -> list[str]:
    return [tier for tier in TIERS if item.get_closest_marker(tier)] or [_DEFAULT]


def _is_named(item: pytest.Item, config: pytest.Config) -> bool:
    """Whether the command line names this test (``file.py::test``), not only its file."""
    for argument in config.args:
        file, _, names = argument.partition("::")
        if not names or (config.invocation_params.dir / file).resolve() != item.path.resolve():
            continue
        own = item.nodeid.partition("::")[2]
        if own == names or own.startswith((f"{names}::", f"{names}[")):
            return True
    return False


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_tiers_of_tests] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers = {item.nodeid: _tiers(item) for item in items}
    config.stash[_tiers_of_tests].update(tiers)
    if hasattr(config, "workeroutput"):  # under pytest-xdist only the workers collect
        config.workeroutput["tiers"] = tiers

    expression = config.option.markexpr
    left_out = {"slow"}.difference(re.findall(r"\w+", expression)) if expression else set(TIERS)
    deselected = [
        item for item in items if left_out.intersection(tiers[item.nodeid]) and not _is_named(item, config)
    ]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        gone = set(deselected)
        items[:] = [item for item in items if item not in gone]


# ---------------------------------------------------------------------------------------------- reporting


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and os.environ.get("CI")
        and _SERVICE_TIERS.intersection(_tiers(item))
    ):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{reason} (a test of a chosen tier must run where CI is set)"
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[_tiers_of_tests].update(getattr(node, "workeroutput", {}).get("tiers", {}))


# The outermost wrapper, so that its lines come last, below pytest's own list of failures and skips.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> Generator[None, Any, Any]:
    yield
    if not config.option.collectonly:
        _name_tiers_not_run(terminalreporter, config)


def _name_tiers_not_run(terminalreporter: Any, config: pytest.Config) -> None:
    ran = {
        report.nodeid
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
        and report.when == "call"
        and (not report.skipped or hasattr(report, "wasxfail"))
    }
    tiers_of_tests = config.stash[_tiers_of_tests]
    tiers_that_ran = {tier for test in ran for tier in tiers_of_tests.get(test, ())}
    not_run = Counter(
        tier for test, tiers in tiers_of_tests.items() if test not in ran for tier in tiers if tier in TIERS
    )
    if _DEFAULT not in tiers_that_ran:
        not_run[_DEFAULT] = sum(_DEFAULT in tiers for tiers in tiers_of_tests.values())
    lines = [
        f"{tier}: {not_run[tier]} test{'s' if not_run[tier] > 1 else ''}, run with: "
        + ("pytest" if tier == _DEFAULT else f"pytest -m {tier}")
        for tier in (_DEFAULT, *TIERS)
        if not_run[tier]
    ]
    if lines:
        terminalreporter.section("tiers not run")
        for line in lines:
            terminalreporter.line(line)


# ---------------------------------------------------------------------------------------------- keys


@pytest.fixture(scope="session", autouse=True)
def _keys_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sign with a key of the tests' own, in their commands too: the user's own folder is never touched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OVERSAFE_KEYS", str(tmp_path_factory.mktemp("keys")))
        yield


# ---------------------------------------------------------------------------------------------- services


def _find_data_folder(config: pytest.Config) -> Path:
    folder = Path(os.environ.get("OVERSAFE_DATA") or config.rootpath.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the data sets are not in {folder}; set OVERSAFE_DATA to their folder")
    # The library reads the same variable.
    os.environ["OVERSAFE_DATA"] = str(folder)
    return folder


def _find_chromium() -> str:
    path = os.environ.get("OVERSAFE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not path or not Path(path).exists():
        pytest.skip("Chromium was not found; install it, or set OVERSAFE_CHROMIUM to its path")
    return path


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Here and not in a fixture, so that it also comes before the fixtures of a whole module.
    if item.get_closest_marker("data"):
        _find_data_folder(item.config)
    if item.get_closest_marker("browser"):
        _find_chromium()


@pytest.fixture(scope="session")
def data_folder(pytestconfig: pytest.Config) -> Path:
    """The folder with the data sets; the environment names it to the library as well."""
    return _find_data_folder(pytestconfig)


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """The address of an empty PostgreSQL database that the tests may fill."""
    url = os.environ.get("OVERSAFE_POSTGRES_URL")
    if not url:
        pytest.skip('PostgreSQL is not running; start it with: eval "$(scripts/services.sh start)"')
    return url


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session on this machine, with its files in a temporary folder."""
    sql = pytest.importorskip("pyspark.sql", reason="install the extra 'engines'")
    java = shutil.which("java", path=f"{os.environ['JAVA_HOME']}/bin" if "JAVA_HOME" in os.environ else None)
    if not java:
        pytest.skip("Spark needs Java, which is not installed")
    folder = tmp_path_factory.mktemp("spark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder))
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser's program."""
    return _find_chromium()


@dataclass
class PageLog:
    """What a page said on its console as an error, and every address it asked for."""

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


# Not for the whole session: while it is open, Playwright's event loop keeps other tests from running theirs.
@pytest.fixture(scope="module")
def _browser(chromium: str) -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="install the extra 'browser'")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, headless=True, chromium_sandbox=False, args=_CHROMIUM_FLAGS
        )
        yield browser
        browser.close()


@pytest.fixture
def page_log() -> PageLog:
    """The errors and requests of the test's page."""
    return PageLog()


@pytest.fixture
def page(_browser: Any, page_log: PageLog) -> Iterator[Any]:
    """A Playwright page without a network (``page.context.set_offline(False)`` for a local server)."""
    context = _browser.new_context(offline=True)
    page = context.new_page()
    page.on(
        "console", lambda message: page_log.errors.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: page_log.errors.append(str(error)))
    page.on("request", lambda request: page_log.requests.append(request.url))
    yield page
    context.close()


# What axe-core calls an impact; less than these is no barrier.
_BARRIERS = ("serious", "critical")


@pytest.fixture
def axe() -> Callable[[Any], list[str]]:
    """A function that returns the serious and critical barriers that axe-core finds on a page."""
    sync_playwright = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="install the extra 'browser'"
    )

    def barriers(page: Any) -> list[str]:
        found = sync_playwright.Axe().run(page).response
        return [
            f"{violation['id']}: {node['html'][:200]}"
            for violation in found["violations"]
            if violation["impact"] in _BARRIERS
            for node in violation["nodes"]
        ]

    return barriers
