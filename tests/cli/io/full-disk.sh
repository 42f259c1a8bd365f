# A file system that is full, too.
as_root
mkdir "$TMP/small"
if ! unshare --mount true 2>/dev/null; then skip 'no mount namespace can be made here'; fi
unshare --mount bash -c 'mount -t tmpfs -o size=64k none "$1/small" && "$2" exec -- head -c 1m /dev/zero >"$1/small/f"; echo "exit $?"' sh "$TMP" "$PX"
