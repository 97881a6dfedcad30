#!/usr/bin/env bash
# The tests of data, privacy, protect, learn and attack with the lowest versions that pyproject.toml declares.
#
#   scripts/lowest.sh                  makes the environment anew and runs the tests
#   scripts/lowest.sh ARGUMENTS        gives pytest other arguments, such as tests/data -x
#
# The core dependencies are at the lowest versions, what they need in turn and the test tools at the newest ones that fit.
# PYTHON names the interpreter (default: python3.11), OVERSAFE_LOWEST the folder of the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${OVERSAFE_LOWEST:-.venv-lowest}
"${PYTHON:-python3.11}" -m venv --clear "$folder"

# "name>=1.2" becomes "name==1.2"; an upper bound beside it stays. Of the tools for development only those of the tests.
"$folder/bin/python" - >"$folder/lowest.txt" <<'PY'
import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
tools = {"pytest", "pytest-xdist", "hypothesis", "jsonschema"}
print(*(line.replace(">=", "==") for line in project["dependencies"]), sep="\n")
print(*(line for line in project["optional-dependencies"]["dev"] if re.split("[<>=]", line)[0] in tools), sep="\n")
PY
cat "$folder/lowest.txt"
"$folder/bin/pip" install -q --disable-pip-version-check -r "$folder/lowest.txt" -e .

if [[ $# -eq 0 ]]; then
    set -- tests/data tests/privacy tests/protect tests/learn tests/attack
fi
"$folder/bin/python" -m pytest -q -n "$(nproc)" --disable-warnings "$@"
