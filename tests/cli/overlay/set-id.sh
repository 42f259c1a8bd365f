# No program with another's rights comes out of a box, nor can one be written that was there.
need_overlay_dir
run() { "$PX" exec --rootfs "$TMP/rootfs" --overlay="$TMP/kept" --persist "$@"; }
run -c 'cp=/bin/busybox; $cp cp /bin/busybox /tool; $cp chmod 4755 /tool || echo refused; $cp mknod /disk b 8 0 || echo refused
    $cp mknod /white c 0 0 || echo refused; $cp stat -c %a /tool' 2>/dev/null
chmod 4755 "$TMP/kept/upper/tool"
says run -c 'echo RAN'
