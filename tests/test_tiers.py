"""The tiers choose the tests they say, and the services behind them answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]

SUITE = """
    import pytest

    def test_plain():
        pass

    @pytest.mark.engines
    @pytest.mark.parametrize("engine", ["one", "two"])
    def test_engine(engine):
        pass

    @pytest.mark.data
    def test_data(data_folder):
        assert (data_folder / "here").exists()

    @pytest.mark.data
    @pytest.mark.slow
    def test_slow():
        pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name in ("CI", "OVERSAFE_DATA", "OVERSAFE_POSTGRES_URL", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    markers = "\n".join(
        f"        {tier}: a tier" for tier in ("data", "engines", "browser", "extras", "slow")
    )
    # Hypothesis, which plays no part here, would take a second of every inner run to load.
    options = "--strict-markers -p no:cacheprovider -p no:hypothesispytest"
    pytester.makeini(f"[pytest]\naddopts = {options}\nmarkers =\n{markers}\n")
    pytester.makepyfile(test_suite=SUITE)
    folder = pytester.mkdir("datasets")
    (folder / "here").touch()
    monkeypatch.setenv("OVERSAFE_DATA", str(folder))
    return pytester


def test_plain_pytest_runs_the_default_tier_and_names_the_others(suite: pytest.Pytester) -> None:
    result = suite.runpytest()
    result.assert_outcomes(passed=1, deselected=4)
    result.stdout.fnmatch_lines(
        [
            "*tiers not run*",
            "data: 2 tests, run with: pytest -m data",
            "engines: 2 tests, run with: pytest -m engines",
            "slow: 1 test, run with: pytest -m slow",
        ]
    )
    result.stdout.no_fnmatch_line("default: *")
    result.stdout.no_fnmatch_line("browser: *")


def test_a_chosen_tier_runs_and_the_rest_is_named(suite: pytest.Pytester) -> None:
    result = suite.runpytest("-m", "engines or data")
    result.assert_outcomes(passed=3, deselected=2)
    result.stdout.fnmatch_lines(
        [
            "default: 1 test, run with: pytest",
            "data: 1 test, run with: pytest -m data",
            "slow: 1 test, run with: pytest -m slow",
        ]
    )
    result.stdout.no_fnmatch_line("engines: *")


@pytest.mark.parametrize(("expression", "passed"), [("slow", 1), ("(data or slow)", 2), ("not slow", 4)])
def test_slow_tests_run_only_when_the_expression_says_so(
    suite: pytest.Pytester, expression: str, passed: int
) -> None:
    suite.runpytest("-m", expression).assert_outcomes(passed=passed, deselected=5 - passed)


@pytest.mark.parametrize(
    ("name", "passed"), [("test_engine", 2), ("test_engine[two]", 1), ("test_slow", 1), ("test_plain", 1)]
)
def test_a_test_named_on_the_command_line_runs_whatever_its_tier(
    suite: pytest.Pytester, name: str, passed: int
) -> None:
    suite.runpytest(f"test_suite.py::{name}").assert_outcomes(passed=passed)


def test_the_tiers_are_also_named_when_workers_collect(suite: pytest.Pytester) -> None:
    result = suite.runpytest("-n", "2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["engines: 2 tests, run with: pytest -m engines"])


MISSING = {
    "data": "@pytest.mark.data\ndef test_it(): pass",
    "engines": "@pytest.mark.engines\ndef test_it(postgres_url): pass",
    "browser": "@pytest.mark.browser\ndef test_it(): pass",
}


@pytest.fixture(params=sorted(MISSING))
def lonely_suite(
    suite: pytest.Pytester, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[pytest.Pytester, str]:
    for name in ("OVERSAFE_DATA", "OVERSAFE_CHROMIUM"):
        monkeypatch.setenv(name, str(suite.path / "nowhere"))
    suite.makepyfile(test_suite=f"import pytest\n\n{MISSING[request.param]}\n")
    return suite, request.param


def test_a_missing_service_skips_with_a_reason(lonely_suite: tuple[pytest.Pytester, str]) -> None:
    suite, tier = lonely_suite
    result = suite.runpytest("-m", tier, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*OVERSAFE_*" if tier != "engines" else "SKIPPED*services.sh start*"])
    result.stdout.fnmatch_lines([f"{tier}: 1 test, run with: pytest -m {tier}"])


def test_a_missing_service_fails_in_ci(
    lonely_suite: tuple[pytest.Pytester, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, tier = lonely_suite
    monkeypatch.setenv("CI", "true")
    result = suite.runpytest("-m", tier)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*must run where CI is set*"])


def test_an_expected_failure_and_a_skip_of_the_default_tier_stay_so_in_ci(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(
        test_suite="""
        import pytest

        @pytest.mark.engines
        @pytest.mark.xfail
        def test_known_defect():
            assert False

        def test_elsewhere():
            pytest.skip("only on another system")
        """
    )
    monkeypatch.setenv("CI", "true")
    suite.runpytest("-m", "engines or not engines").assert_outcomes(xfailed=1, skipped=1)


@pytest.mark.engines
def test_postgresql_answers_as_a_plain_role(postgres_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_url) as connection:
        query = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
        assert connection.execute(query).fetchone() == (False,)


@pytest.mark.engines
def test_spark_counts(spark: Any) -> None:
    assert spark.range(1000).filter("id % 2 = 0").count() == 500


@pytest.mark.data
def test_the_data_folder_holds_tables(data_folder: Path) -> None:
    assert list(data_folder.glob("*.parquet"))


@pytest.mark.browser
def test_a_local_page_runs_without_the_network(page: Any, page_log: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        "<!doctype html><h1>waiting</h1><script>"
        "document.querySelector('h1').textContent = 'ready';"
        "console.error('said aloud');"
        "fetch('http://127.0.0.1:9/').catch(() => document.body.append('no network'));"
        "</script>"
    )
    page.goto(file.as_uri())
    page.get_by_text("no network").wait_for()
    assert page.text_content("h1") == "ready"
    assert "said aloud" in page_log.errors
    assert page_log.requests == [file.as_uri(), "http://127.0.0.1:9/"]
