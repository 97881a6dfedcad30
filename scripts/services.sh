#!/usr/bin/env bash
# The services that the "engines" and "browser" tests need: PostgreSQL, Java for Spark, and Chromium.
#
#   scripts/services.sh install            what is missing, from Debian's packages
#   eval "$(scripts/services.sh start)"    a private PostgreSQL; sets the variables that the tests read
#   scripts/services.sh stop               ends that PostgreSQL and removes its files
#
# "start" prints the variables as shell commands, and everything meant for a person goes to standard error.
# With CI=true a service that is missing is an error; otherwise its tests are skipped.
set -euo pipefail

say() { printf 'services: %s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

missing() {
    if [[ -n "${CI:-}" ]]; then
        fail "$*"
    fi
    say "$*; its tests will be skipped"
}

# Debian keeps the server's programs off the PATH, one folder per version; the newest is taken.
postgres_bin() {
    local candidate
    while read -r candidate; do
        if [[ -x "$candidate/initdb" && -x "$candidate/pg_ctl" && -x "$candidate/psql" ]]; then
            echo "$candidate"
            return
        fi
    done < <(
        if command -v initdb >/dev/null; then dirname "$(command -v initdb)"; fi
        ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV
    )
}

chromium_path() {
    local name
    if [[ -n "${OVERSAFE_CHROMIUM:-}" ]]; then
        echo "$OVERSAFE_CHROMIUM"
        return
    fi
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name"; then
            return
        fi
    done
}

has_java() { "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version >/dev/null 2>&1; }

install() {
    local packages=()
    if [[ -z "$(postgres_bin)" ]]; then packages+=(postgresql); fi
    if [[ -z "$(chromium_path)" ]]; then packages+=(chromium); fi
    if ! has_java; then packages+=(default-jre-headless); fi
    if [[ ${#packages[@]} -eq 0 ]]; then
        say "PostgreSQL, Chromium and Java are installed"
        return
    fi
    command -v apt-get >/dev/null || fail "install these by hand, apt-get is not there: ${packages[*]}"
    local become=()
    if [[ $EUID -ne 0 ]]; then become=(sudo); fi
    say "installing ${packages[*]}"
    "${become[@]}" apt-get update -qq >/dev/null
    "${become[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null </dev/null
}

# PostgreSQL refuses to run as root.
as_postgres() {
    if [[ $EUID -eq 0 ]]; then
        runuser -u postgres -- "$@"
    else
        "$@"
    fi
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

discard_postgres() {
    as_postgres "$bin/pg_ctl" --pgdata "$folder/data" --mode immediate --silent stop >&2 || true
    rm -rf "$folder"
}

start_postgres() {
    local port attempt
    bin=$(postgres_bin)
    if [[ -z "$bin" ]]; then
        missing "PostgreSQL is not installed"
        return
    fi
    folder=$(mktemp -d "${TMPDIR:-/tmp}/oversafe-services.XXXXXX")
    chmod 700 "$folder"
    if [[ $EUID -eq 0 ]]; then chown postgres "$folder"; fi
    # A start that fails half way must leave neither a server nor a folder behind.
    trap discard_postgres EXIT
    as_postgres "$bin/initdb" --pgdata "$folder/data" --username admin --encoding UTF8 --locale C \
        --auth trust --no-sync >"$folder/initdb.log" 2>&1 || fail "initdb failed: $(tail -3 "$folder/initdb.log")"
    # The superuser can only come through the socket, whose folder is closed to others. Over loopback there
    # is nothing but a plain role that owns the test database.
    printf '%s\n' 'local all all trust' 'host oversafe oversafe 127.0.0.1/32 trust' |
        as_postgres tee "$folder/data/pg_hba.conf" >/dev/null
    for attempt in 1 2 3 4 5; do
        # Another process may take the port between the question and the start: hence the attempts.
        port=$(free_port)
        if as_postgres "$bin/pg_ctl" --pgdata "$folder/data" --log "$folder/server.log" --wait --silent \
            --options "-p $port -h 127.0.0.1 -k '$folder' -c fsync=off -c full_page_writes=off" start >&2; then
            break
        fi
        [[ $attempt -lt 5 ]] || fail "PostgreSQL did not start: $(tail -3 "$folder/server.log")"
    done
    as_postgres "$bin/psql" --quiet --no-psqlrc --host "$folder" --port "$port" --username admin \
        --dbname postgres --set ON_ERROR_STOP=1 \
        --command 'CREATE ROLE oversafe LOGIN' --command 'CREATE DATABASE oversafe OWNER oversafe' >&2
    trap - EXIT
    say "PostgreSQL answers on port $port of 127.0.0.1"
    printf 'export OVERSAFE_SERVICES=%q\n' "$folder"
    printf 'export OVERSAFE_POSTGRES_URL=%q\n' "postgresql://oversafe@127.0.0.1:$port/oversafe"
}

start() {
    local chromium
    chromium=$(chromium_path)
    if [[ -n "$chromium" ]]; then
        printf 'export OVERSAFE_CHROMIUM=%q\n' "$chromium"
    else
        missing "Chromium is not installed"
    fi
    has_java || missing "Java, which Spark needs, is not installed"
    start_postgres
}

stop() {
    bin=$(postgres_bin)
    folder=${OVERSAFE_SERVICES:-}
    if [[ -z "$folder" || ! -f "$folder/data/PG_VERSION" ]]; then
        say "nothing to stop (OVERSAFE_SERVICES names no running PostgreSQL)"
        return
    fi
    discard_postgres
    say "PostgreSQL stopped"
}

case "${1:-}" in
    install | start | stop) "$1" ;;
    *)
        sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
