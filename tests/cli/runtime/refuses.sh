# A runtime that cannot make the container: its own words, from its log, and none of them on the streams of the box.
need unshare crun
cat >"$TMP/fake" <<'FAKE'
#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" = --log ] && log=$2
    shift
done
[ -z "$log" ] || echo '{"msg":"cannot do \"this\": no luck","level":"error"}' >"$log"
echo 'words of the runtime' >&2
exit 1
FAKE
chmod 755 "$TMP/fake"
own=(-m)
[ "$AS" = root ] || own=(-rm)
status=0
# shellcheck disable=SC2016
unshare "${own[@]}" bash -eu -c 'mount --bind "$1" "$2"; "$3" exec --runtime crun -- true' bash "$TMP/fake" "$(command -v crun)" "$PX" 2>"$TMP/err" || status=$?
sed -n '1,5p' "$TMP/err"
echo "exit $status"
grep -c 'words of the runtime' "$TMP/err" || true
