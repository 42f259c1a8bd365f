# The root can be changed, for this box alone: what is below stays as it is, and nothing is left.
need_overlay
mkdir "$TMP/rootfs/dir"
echo lower >"$TMP/rootfs/dir/file"
listing "$TMP/rootfs" >"$TMP/before"
try "$PX" exec --rootfs "$TMP/rootfs" -c 'touch /etc/x' 2>/dev/null
"$PX" exec --rootfs "$TMP/rootfs" --overlay -c '
    touch /etc/x && echo more >>/dir/file && cat /dir/file && /bin/busybox mkdir /new && /bin/busybox mv /dir/file /new/ && cat /new/file
    /bin/busybox rm -r /dir && /bin/busybox mkdir /dir && ls /dir && /bin/busybox rm /etc/hosts && echo gone
    /bin/busybox ln -s /new /link && cat /link/file'
listing "$TMP/rootfs" | diff "$TMP/before" - && echo 'below nothing changed'
"$PX" exec --rootfs "$TMP/rootfs" --overlay -c 'cat /dir/file; ls /etc/x /new' 2>/dev/null || echo 'nothing is left'
! grep "$TMP" /proc/self/mountinfo
