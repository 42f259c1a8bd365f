# Changes that go to a directory are gone with the box: the directory, too, if px has made it.
need_overlay_dir
mkdir "$TMP/given"
chmod 700 "$TMP/given"
for dir in given made; do
    "$PX" exec --rootfs "$TMP/rootfs" --overlay="$TMP/$dir" -c 'echo 1 >/etc/x && cat /etc/x && /bin/busybox rm -r /usr && echo removed'
    find "$TMP/$dir" -printf '%P|\n' 2>/dev/null || echo "there is no $dir"
done
cd "$TMP" && "$PX" exec --rootfs rootfs --overlay=made -c 'touch /x && echo relative'
ls -d "$TMP/rootfs/usr" >/dev/null && echo below
