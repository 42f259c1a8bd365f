# A root of the user's own stays as it is.
need runc crun
make_rootfs
find "$TMP/rootfs" | sort >"$TMP/before"
for runtime in runc crun; do
    "$PX" exec --runtime $runtime --rootfs "$TMP/rootfs" -v "$TMP/before:/given/list:ro" --tmpfs /made -- /bin/sh -c '
        echo here; pwd; ls -d /given/list /made /bin/busybox; (echo x >/bin/x) 2>/dev/null || echo read-only'
done
find "$TMP/rootfs" | sort | cmp - "$TMP/before" && echo untouched
