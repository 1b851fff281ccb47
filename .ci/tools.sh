#!/usr/bin/env bash
# A browser and TeX for the tests that use them. What cannot be had costs one line here, and those tests skip.
set -uo pipefail

missing=()
command -v chromium >/dev/null || missing+=(chromium)
# texlive-latex-recommended has booktabs.sty
kpsewhich booktabs.sty >/dev/null 2>&1 || missing+=("texlive-latex-base texlive-latex-recommended")
[ ${#missing[@]} -eq 0 ] && exit 0

skip() { echo "not installed: ${missing[*]} ($1); their tests skip" >&2; exit 0; }
[ "$(id -u)" -eq 0 ] || skip "not root"
command -v apt-get >/dev/null || skip "no apt-get"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
get() { DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=30 "$@" >"$log" 2>&1; }

get update || skip "apt-get update: $(tail -n 1 "$log")"
for packages in "${missing[@]}"; do
    # shellcheck disable=SC2086  # several names in one word
    get install -y --no-install-recommends $packages ||
        echo "not installed: $packages ($(tail -n 1 "$log")); their tests skip" >&2
done
