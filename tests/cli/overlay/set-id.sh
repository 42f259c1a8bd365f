# No program with another's rights comes out of a box, and one that lies in kept changes loses them before the next run.
need_overlay_dir
run() { "$PX" --json exec --rootfs "$TMP/rootfs" --overlay="$TMP/kept" --persist "$@" >"$TMP/json"; }
run -c 'cp=/bin/busybox; $cp cp /bin/busybox /tool; $cp chmod 4755 /tool || echo refused; $cp mknod /disk b 8 0 || echo refused
    $cp mknod /white c 0 0 || echo refused; $cp stat -c %a /tool'
grep -o '"stdout":"[^"]*"' "$TMP/json"
chmod 4755 "$TMP/kept/upper/tool"
run -c '/bin/busybox stat -c %a /tool'
grep -oE '"stdout":"[^"]*"|set-id bits or capabilities were removed' "$TMP/json"
stat -c %a "$TMP/kept/upper/tool"
run -c true
grep -c 'were removed' "$TMP/json" || true
