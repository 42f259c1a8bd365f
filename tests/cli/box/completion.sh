# Names of boxes that run are completed where a name belongs, and only there; list --names says them without asking anybody.
trap '"$PX" box stop --all' EXIT
"$PX" box list --names
for name in build beta other; do "$PX" box start --name "$name" >/dev/null; done
"$PX" box list --names
"$PX" completion bash >"$TMP/bash"
cat >"$TMP/ask" <<'ASK'
. "$1"; shift
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _px; echo "${*:2}: ${COMPREPLY[*]}"; }
cd "$2" || exit
try "$1" box exec b
try "$1" box show ''
try "$1" box stop build o
try "$1" box copy be
try "$1" box start b
try "$1" box exec build ec | grep -c 'echo'
ASK
mkdir "$TMP/empty"
bash "$TMP/ask" "$TMP/bash" "$PX" "$TMP/empty"
"$PX" box stop --all
"$PX" box list --names
