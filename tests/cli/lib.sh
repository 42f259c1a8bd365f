# tests/cli/lib.sh - words that the tests share; goldens.py sources it before each of them.
# shellcheck shell=bash

# Ends the test; the reason says what this machine or this caller lacks.
skip() {
    echo "$*" >&2
    exit 77
}

need() {            # need PROGRAM...
    local name
    for name; do
        command -v "$name" >/dev/null || skip "there is no $name here"
    done
}

as_root() { [ "$AS" = root ] || skip 'only for root'; }
as_user() { [ "$AS" = user ] || skip 'only for an ordinary user'; }

# Runs a command that may fail and says how it ended.
try() {             # try COMMAND...
    local status=0
    "$@" || status=$?
    echo "exit $status"
}

# The first line of an error, and which of a reason and an advice come with it.
says() {            # says COMMAND...: stderr's first line, then which of Why and Fix are there
    local status=0
    "$@" 2>"$TMP/says.err" || status=$?
    sed -n '1p;/^Why:$/p;/^Fix:$/p' "$TMP/says.err"
    echo "exit $status"
}

# Waits until a file has something in it; fails if it never does.
until_filled() {    # until_filled FILE
    local i
    for ((i = 0; i < 400; i++)); do
        [ ! -s "$1" ] || return 0
        sleep 0.025
    done
    echo "nothing in $1" >&2
    return 1
}

# Waits until no process has this word in its command line; fails if one stays.
until_gone() {      # until_gone WORD
    local i
    for ((i = 0; i < 200; i++)); do
        pgrep -f -- "$1" >/dev/null || return 0
        sleep 0.025
    done
    echo "a process with '$1' is still there" >&2
    return 1
}

soon() {            # soon COMMAND...: waits until it is true; says so if it never is
    local i
    for ((i = 0; i < 400; i++)); do
        ! "$@" || return 0
        sleep 0.025
    done
    echo "never: $*"
}
group_empty() { [ -z "$(find /sys/fs/cgroup -name "$1" -exec cat {}/cgroup.procs \; 2>/dev/null)" ]; }
group_gone() { [ -z "$(find /sys/fs/cgroup -name "$1" 2>/dev/null)" ]; }

# A word that no other test has in its command lines. sleep takes it as a number of seconds: a day and something.
unique() { echo "9$(printf '%05d' $((BASHPID % 100000)))$((RANDOM % 1000))"; }

# A root file system of one static program, in $TMP/rootfs.
make_rootfs() {
    need busybox
    mkdir -p "$TMP/rootfs/bin" "$TMP/rootfs/etc" "$TMP/rootfs/lib" "$TMP/rootfs/usr"
    cp "$(command -v busybox)" "$TMP/rootfs/bin/busybox"
    local name
    for name in sh ls cat echo id mount touch env pwd; do
        ln -s busybox "$TMP/rootfs/bin/$name"
    done
}

# Skips where memory cannot take the changes of a root: the tmpfs of an older kernel has no attributes of users.
need_overlay() {
    make_rootfs
    "$PX" exec --rootfs "$TMP/rootfs" --overlay -- /bin/busybox true 2>"$TMP/need.err" || ! grep -q 'before Linux 6.6' "$TMP/need.err" ||
        skip 'the tmpfs of this kernel has no attributes of users'
}

# Skips where the directories of the tests cannot take them either.
need_overlay_dir() {
    make_rootfs
    "$PX" exec --rootfs "$TMP/rootfs" --overlay="$TMP/need.dir" -- /bin/busybox true 2>"$TMP/need.err" ||
        ! grep -qE 'no attributes of users|does not support id-mapped' "$TMP/need.err" || skip 'this file system cannot hold an overlay'
}

# Everything of a tree that can be seen from outside.
listing() { (cd "$1" && find . -printf '%p %y %m %U:%G %s %T@ %l\n' | LC_ALL=C sort); }

# The same for --changes, which needs no other root.
need_changes() {
    mkdir -p "$TMP/need"
    "$PX" -q exec --changes "$TMP/need" -- true 2>"$TMP/need.err" || ! grep -qE 'before Linux 6.6|does not support id-mapped' "$TMP/need.err" ||
        skip 'this kernel or file system cannot hold an overlay'
}
