# tests/vm/check.sh - what the guest's scripts share. POSIX sh.
#
# From init: PX, the px to test; PX_VM_KIND, static or glibc; PX_VM_USER, who runs it; PX_VM_RESULTS, where each result is
# noted for the count. A name is USER/KIND/CHECK, so that each line of the output stands alone.

set -u
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
prefix=$PX_VM_USER/$PX_VM_KIND
status=0
out=

note() {
    echo "$1"
    echo "$1" >>"$PX_VM_RESULTS"
}

pass() {            # pass NAME
    note "ok $prefix/$1"
}

skip() {            # skip NAME WHY
    note "skip $prefix/$1: $2"
}

# What the last command printed goes below the line, for the host to show.
fail() {            # fail NAME WHY
    note "not ok $prefix/$1: $2"
    for file in out err; do
        [ ! -s "$tmp/$file" ] || head -n 8 "$tmp/$file" | cut -c 1-300 | sed "s/^/#   $file: /"
    done
}

# Runs a command for the checks below: its status in $status, its standard output in $out and $tmp/out, errors in $tmp/err.
# The comment line names the culprit if the guest hangs here.
run() {             # run COMMAND...
    echo "# run: $*" | head -n 1 | cut -c 1-120
    status=0
    "$@" </dev/null >"$tmp/out" 2>"$tmp/err" || status=$?
    out=$(cat "$tmp/out")
}

check_status() {    # check_status NAME STATUS
    if [ "$status" -eq "$2" ]; then
        pass "$1"
    else
        fail "$1" "exit status $status, not $2"
    fi
}

check_out() {       # check_out NAME TEXT: exactly this text, and status 0
    if [ "$status" -ne 0 ]; then
        fail "$1" "exit status $status, not 0"
    elif [ "$out" != "$2" ]; then
        fail "$1" "printed '$out', not '$2'"
    else
        pass "$1"
    fi
}

check_line() {      # check_line NAME FILE PATTERN: some line of out or err matches the extended regular expression
    if grep -q -E "$3" "$tmp/$2"; then
        pass "$1"
    else
        fail "$1" "no line of $2 matches $3"
    fi
}
