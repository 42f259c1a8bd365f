make_rootfs
echo own >"$TMP/rootfs/etc/own"
echo 'root:x:0:0:evil:/:/bin/sh' >"$TMP/rootfs/etc/passwd"
mkdir "$TMP/rootfs/tmp" "$TMP/rootfs/srv"
echo hidden >"$TMP/rootfs/tmp/f"
echo data >"$TMP/rootfs/srv/f"
"$PX" exec --rootfs "$TMP/rootfs" -c 'cat /etc/own /srv/f; busybox grep -c sandbox /etc/passwd; ls /tmp'
