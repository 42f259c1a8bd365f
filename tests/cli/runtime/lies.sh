# A runtime that makes another container than it was told to: px-start looks for itself, and the command never runs.
need unshare crun jq
cat >"$TMP/fake" <<'FAKE'
#!/bin/sh
jq '.process.capabilities.bounding = ["CAP_CHOWN"]' /bundle/config.json >/bundle/other && cat /bundle/other >/bundle/config.json
exec /usr/local/libexec/real "$@"
FAKE
own=(-m)
[ "$AS" = root ] || own=(-rm)
status=0
# The real program has to lie where the processes around the container can see it: in /usr.
# shellcheck disable=SC2016
unshare "${own[@]}" bash -eu -c '
    mount -t tmpfs tmpfs /usr/local
    mkdir /usr/local/libexec
    cp "$2" /usr/local/libexec/real
    cp "$1" /usr/local/libexec/fake
    chmod 755 /usr/local/libexec/fake
    mount --bind /usr/local/libexec/fake "$2"
    "$3" exec --runtime crun -- echo it ran' bash "$TMP/fake" "$(command -v crun)" "$PX" 2>"$TMP/err" || status=$?
sed -n '1p' "$TMP/err"
echo "exit $status"
