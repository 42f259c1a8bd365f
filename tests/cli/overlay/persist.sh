# Kept changes are there for the next run, belong to the caller, and are lost by no forgotten word.
need_overlay_dir
echo old >"$TMP/rootfs/etc/own"
run() { "$PX" exec --rootfs "$TMP/rootfs" --overlay="$TMP/kept" "$@"; }
run --persist -c 'echo 1 >/etc/x; /bin/busybox rm /etc/own; /bin/busybox rm -r /usr; /bin/busybox mkdir /usr; echo 2 >/usr/new'
(cd "$TMP/kept" && find . ! -uid "$(id -u)"; find upper -printf '%p %y\n' | LC_ALL=C sort)
run --persist -c 'cat /etc/x /usr/new; ls /etc/own' 2>/dev/null || echo "exit $?"
says run -c true
(cd "$TMP/kept" && cat upper/etc/x)
says "$PX" exec --rootfs "$TMP/rootfs" --persist -c true
says "$PX" exec --rootfs "$TMP/rootfs" --overlay --persist -c true
