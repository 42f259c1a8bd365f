# A tree of one program; nothing is ever made in it.
make_rootfs
find "$TMP/rootfs" | sort >"$TMP/before"
"$PX" exec --rootfs "$TMP/rootfs" -c 'echo hello; id -u; pwd; ls / | tr "\n" " "; echo; cat /etc/hostname; touch /bin/x /etc/x /x 2>/dev/null || echo read-only; echo t >/tmp/t && cat /tmp/t'
"$PX" exec --base "$TMP/rootfs" -- /bin/busybox echo base
find "$TMP/rootfs" | sort | cmp - "$TMP/before"
