# Nobody else can enter the directory that takes the changes, also if it was there before and open. While it is in use
# no box gets it for writing, by a bind of a directory above it.
need_overlay_dir
mkdir -m 755 "$TMP/up"
run() { "$PX" exec --rootfs "$TMP/rootfs" --overlay="$TMP/up" "$@"; }
says run --persist -c 'echo kept >/file'
stat -c %a "$TMP/up"
chmod 755 "$TMP/up"
says run --persist -c 'cat /file'
stat -c %a "$TMP/up"
exec 8<"$TMP/up"
flock -x 8
says "$PX" exec -v "$TMP:/w" -- true
says "$PX" exec -v "$TMP:/w:ro" -- echo read-only
flock -u 8
says "$PX" exec -v "$TMP:/w" -- echo afterwards
says run --persist -v "$TMP:/w" -c true
