# The bound of all writable directories holds for the root together with them.
need_overlay
"$PX" exec --rootfs "$TMP/rootfs" --overlay --disk 4m -c '
    fill() { ! /bin/busybox dd if=/dev/zero of=$1 bs=1024 count=$2 2>/dev/null; }
    fill /big 3000 && echo "too small"; fill /tmp/big 3000 && echo held; /bin/busybox rm /big; fill /tmp/big 3000 || echo again
    ls -d /.scratch/* 2>/dev/null; true'
"$PX" --json exec --rootfs "$TMP/rootfs" --overlay --disk 1m -c '/bin/busybox dd if=/dev/zero of=/big bs=1024 count=4000' >"$TMP/json" || jq -c '[.status, .limits_hit[].limit]' "$TMP/json"
