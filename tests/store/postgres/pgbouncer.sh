#!/usr/bin/env bash
# Put a PgBouncer that knows prepared statements (1.21 or newer) into .pgbouncer/ of this checkout,
# for the tests of the store behind a pooler. Debian has one since trixie; it is fetched, with the
# libraries that it needs, from the mirror that this machine installs from, whatever its own
# release. Nothing is installed, and neither apt's settings nor its lists are touched.
# Needs Debian; neither a compiler nor root.
set -euo pipefail

suite=trixie
target=$(cd "$(dirname "$0")/../../.." && pwd)/.pgbouncer
[ -e "$target" ] && exit 0

fail() {
  echo "no PgBouncer for the tests: $*" >&2
  exit 1
}

command -v apt-get >/dev/null || fail "here is no apt-get; put 1.21 or newer on the PATH instead"
work=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{sources,lists,archives}/partial "$work"/{unpacked,kit}
touch "$work/status"

# An apt that has only the source named here, and takes nothing for installed.
apt_of_its_own() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" \
    -o Dir::State::Lists="$work/lists" -o Dir::State::Status="$work/status" \
    -o Dir::Cache="$work" -o Debug::NoLocking=true -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::Languages=none "$@" >"$work/log" 2>&1
}

fetch() {
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keys] $1 $suite main" >"$work/sources/newer.list"
  apt_of_its_own update --error-on=any &&
    apt_of_its_own install --download-only --no-install-recommends --yes pgbouncer
}

# Where this machine's own release comes from, the newer one is too.
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirrors=$(apt-get --print-uris update | sed -n "s|^'\(.*\)/dists/$release/InRelease'.*|\1|p")
[ -n "$mirrors" ] || fail "apt's sources name no mirror of '$release'"
for mirror in $mirrors; do
  fetch "$mirror" && break
done
ls "$work"/archives/pgbouncer_*.deb >/dev/null 2>&1 ||
  fail "$(tail -n 3 "$work/log" 2>/dev/null)"

for package in "$work"/archives/{pgbouncer,lib}*.deb; do
  dpkg-deb --extract "$package" "$work/unpacked"
done
# Of all that, the program with its own loader and the libraries that the loader asks for.
loader=$(ls "$work"/unpacked/usr/lib/*/ld-linux*.so.* | head -n 1)
libraries=$(dirname "$loader")
program="$work/unpacked/usr/sbin/pgbouncer"
"$loader" --library-path "$libraries" --list "$program" |
  sed -n "s|.*\($libraries/[^ ]*\).*|\1|p" | xargs cp -L -t "$work/kit"
ln -s "$(basename "$loader")" "$work/kit/loader"
cp "$program" "$work/kit/program"
cat >"$work/kit/pgbouncer" <<'END'
#!/bin/sh
kit=$(dirname "$(readlink -f "$0")")
exec "$kit/loader" --library-path "$kit" "$kit/program" "$@"
END
chmod +x "$work/kit/pgbouncer"
version=$("$work/kit/pgbouncer" --version) || fail "it does not start here"
mv "$work/kit" "$target"
echo "${version%%$'\n'*} for the tests is in $target"
