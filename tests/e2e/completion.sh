#!/bin/sh
# SPDX-License-Identifier: MIT
# The completion scripts that the programs print, loaded into real shells: what they offer is what
# the parser takes. What a name or a file is called is offered, never run.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need bash

build=${SB_TOP_BUILDDIR:-.}
lib=${SB_TOP_SRCDIR:-.}/tests/lib
PATH=$build:$PATH
export HOME="$scratch/home" XDG_STATE_HOME="$scratch/state"
mkdir -p "$HOME" "$scratch/here/folder" "$scratch/scripts"
cd "$scratch/here" || exit 1
touch plain.txt 'with space' '$(touch evil)'

for shell in bash zsh fish; do
	sbsync completion $shell >"$scratch/scripts/sbsync.$shell"
	sbctl completion $shell >"$scratch/scripts/sbctl.$shell"
	sbhostd --completion $shell >"$scratch/scripts/sbhostd.$shell"
	for p in sbsync sbctl sbhostd; do
		if command -v $shell >/dev/null; then
			check "$p: $shell reads the script" $shell -n "$scratch/scripts/$p.$shell"
		else
			skip "$p: $shell reads the script" "$shell is not installed"
		fi
	done
done
must_fail "another shell is wrong usage" 2 sbsync completion tcsh
is "and the way out is named" "${output#*tcsh}" "': there is bash, zsh and fish"
must_fail "for sbctl, too" 2 sbctl completion tcsh

# offers PROGRAM WORD...: what bash would offer for the last word, sorted, on a line.
cat >"$scratch/offers" <<'BASH'
source "$1/scripts/$2.bash"
complete -p "$2" >/dev/null || exit 1
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
"_$1" "$1" "${!#}"
printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort -u | paste -sd' '
BASH
offers()
{
	bash "$scratch/offers" "$scratch" "$@"
}

is "bash: verbs" "$(offers sbsync st)" "start status stop"
is "bash: long options of the verb" "$(offers sbsync mirror --ex)" "--exclude --exclude-from"
is "bash: choices" "$(offers sbsync mirror --delta '')" "always auto off"
is "bash: choices behind =" "$(offers sbsync mirror --delta = al)" "always"
is "bash: nothing typed behind =" "$(offers sbsync mirror --delta =)" "always auto off"
is "bash: choices behind other options" \
	"$(offers sbsync mirror -p 22 --exclude = x -nv --delta o)" "off"
is "bash: operands are files" "$(offers sbsync mirror pl)" "plain.txt"
is "bash: also behind a far path" "$(offers sbsync mirror box : dir with)" "with space"
is "bash: directories" "$(offers sbctl run --directory '')" "folder"
is "bash: a number is nothing to offer" "$(offers sbsync mirror --port '')" ""
is "bash: words of a verb" "$(offers sbctl docker p)" "prune"
is "bash: verbs of a host" "$(offers sbctl host re)" "release resume"
is "bash: behind its own options" "$(offers sbctl host -H unix : /x cre)" "create"
is "bash: options of a host's verb" "$(offers sbctl host create --qu)" "--quota"
is "bash: a command behind --" "$(offers sbctl run -- mkfif)" "mkfifo"
is "bash: then its words" "$(offers sbctl run -- cat --keep pla)" "plain.txt"
is "bash: options of the daemon" "$(offers sbhostd --storage-b)" "--storage-backend"
is "bash: its choices" "$(offers sbhostd --storage-backend z)" "zfs"

# Everything the parser's help names is offered, and nothing else.
for p in sbsync sbctl sbhostd; do
	case $p in
	sbhostd) verbs=- ;;
	*) verbs=$(offers $p '') ;;
	esac
	for verb in $verbs; do
		[ "$verb" != - ] || verb=
		"$p" $verb --help 2>/dev/null |
			sed -n 's/^ *\(-[a-zA-Z], \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p' |
			LC_ALL=C sort -u >"$scratch/help"
		# The help of `host` tells the options of all its verbs; those of `control` are not
		# completed yet.
		case "$p $verb" in
		"sbctl host" | "sbctl control") continue ;;
		esac
		offers $p $verb -- | tr ' ' '\n' | LC_ALL=C sort -u >"$scratch/offered"
		cmp -s "$scratch/help" "$scratch/offered" || {
			echo "$p $verb: $(diff "$scratch/help" "$scratch/offered" | tr '\n' ' ')"
		}
	done
done >"$scratch/differ"
is "bash offers exactly the options of every --help" "$(cat "$scratch/differ")" ""
skip "the verbs of sbctl control" "not completed yet: bin/common/complete.h knows one group"

# Names of sessions; a file that looks like a command is only a word.
mkdir far
check "a session to complete" sbsync start folder far --name my-session
is "bash: sessions" "$(offers sbsync status my)" "my-session"
is "bash: a name that is a command is offered" "$(offers sbsync mirror '$')" '$(touch evil)'
is "and not run" "$(ls evil 2>/dev/null)" ""

# fish answers what it would offer.
fish_offers()
{
	fish -N -c "source $scratch/scripts/${1%% *}.fish; complete -C '$1'" 2>&1 | cut -f1 |
		LC_ALL=C sort -u | paste -sd' '
}
if command -v fish >/dev/null; then
	is "fish: verbs" "$(fish_offers 'sbsync st')" "start status stop"
	is "fish: options" "$(fish_offers 'sbsync mirror --ex')" "--exclude --exclude-from"
	is "fish: choices" "$(fish_offers 'sbsync mirror --delta ')" "always auto off"
	is "fish: files" "$(fish_offers 'sbsync mirror pl')" "plain.txt"
	is "fish: sessions" "$(fish_offers 'sbsync status m')" "my-session"
	is "fish: verbs of a host" "$(fish_offers 'sbctl host re')" "release resume"
	is "fish: options of a host's verb" "$(fish_offers 'sbctl host create --qu')" "--quota"
	is "fish: not the verb of the same name" "$(fish_offers 'sbctl ls --li')" ""
	is "fish: directories" "$(fish_offers 'sbctl run --directory ')" "far/ folder/"
	is "fish: the daemon's choices" "$(fish_offers 'sbhostd --storage-backend z')" "zfs"
else
	skip "fish offers the same" "fish is not installed"
fi

# zsh on a terminal: Tab, then Enter, with a program of that name that writes down its words.
zsh_types()
{
	python3 "$lib/zshtab.py" "$scratch/scripts" "${1%% *}" "$1" 2>&1
}
if command -v zsh >/dev/null && command -v python3 >/dev/null; then
	is "zsh: a verb" "$(zsh_types 'sbsync mir')" "mirror"
	is "zsh: an option" "$(zsh_types 'sbsync mirror --checks')" "mirror --checksum"
	is "zsh: a choice" "$(zsh_types 'sbsync mirror --delta=al')" "mirror --delta=always"
	is "zsh: a file" "$(zsh_types 'sbsync mirror pl')" "mirror plain.txt"
	is "zsh: a session" "$(zsh_types 'sbsync status my')" "status my-session"
	is "zsh: a verb of a host" "$(zsh_types 'sbctl host rol')" "host rollback"
	is "zsh: an option of a host's verb" "$(zsh_types 'sbctl host create --quo')" \
		"host create --quota="
	is "zsh: the daemon's choice" "$(zsh_types 'sbhostd --storage-backend=z')" \
		"--storage-backend=zfs"
else
	skip "zsh offers the same" "zsh or python3 is not installed"
fi
finish
