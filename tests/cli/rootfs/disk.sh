# A bound for all writable directories also holds over another root.
make_rootfs
"$PX" exec --rootfs "$TMP/rootfs" --disk 4m -- /bin/busybox sh -c 'echo fits >/tmp/a && cat /tmp/a; ! dd if=/dev/zero of=/tmp/b bs=1024 count=8192 2>/dev/null && echo held'
