# A program that is not there, or not one: the error names the package.
need unshare runc
hide() {            # hide RUNTIME: with a file that nobody may run in the way of each copy
    # shellcheck disable=SC2016
    unshare -rm bash -eu -c '
        for place in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin; do
            if [ -e "$place/$2" ]; then mount --bind "$1" "$place/$2"; fi
        done
        "$3" exec --runtime "$2" -- true' bash "$TMP/plain" "$1" "$PX"
}
: >"$TMP/plain"
chmod 644 "$TMP/plain"
for runtime in runc crun runsc; do
    status=0
    hide $runtime 2>"$TMP/err" || status=$?
    sed -n '1p;/apt install/p' "$TMP/err"
    echo "exit $status"
done
