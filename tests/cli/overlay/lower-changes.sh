# Somebody changes the root while a box runs on it: the box may see either, and nothing else happens.
need_overlay
echo one >"$TMP/rootfs/etc/a"
mkfifo "$TMP/go"
"$PX" exec -i --rootfs "$TMP/rootfs" --overlay -c 'cat /etc/a >/dev/null; echo ready; read -r line; echo mine >>/etc/a; echo new >/etc/b; ls /etc/gone >/dev/null; echo done' \
    <"$TMP/go" >"$TMP/out" 2>/dev/null &
exec 3>"$TMP/go"
until_filled "$TMP/out"
echo two >"$TMP/rootfs/etc/a.new" && mv "$TMP/rootfs/etc/a.new" "$TMP/rootfs/etc/a"
echo theirs >"$TMP/rootfs/etc/b"
ln -s /etc "$TMP/rootfs/etc/gone"
echo go >&3
exec 3>&-
wait $! && echo ended
cat "$TMP/out" "$TMP/rootfs/etc/a" "$TMP/rootfs/etc/b"
