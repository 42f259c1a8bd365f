# An archive's tree in the store that somebody has changed: the command sees the archive's files, wherever the start finds the change.
make_rootfs
need jq tar
echo stored >"$TMP/rootfs/etc/note"
tar -cf "$TMP/root.tar" -C "$TMP/rootfs" .
export PX_HOME=$TMP/home
run() { "$PX" exec --rootfs "$TMP/root.tar" "$@"; }
run -- /bin/busybox cat /etc/note
root=$(echo "$PX_HOME"/store/trees/*/root)
for change in 'echo changed >etc/note' 'rm bin/busybox' 'rm -r bin' 'rm -r etc; ln -s /nowhere etc' 'rm ../seal'; do
    (cd "$root" && chmod -R u+w . && eval "$change")
    run -v "$TMP:/etc/place:ro" -- /bin/busybox cat /etc/note
done
ls "$PX_HOME/store/corrupt" | wc -l
echo changed >"$root/etc/note"
"$PX" --json exec --rootfs "$TMP/root.tar" -- /nowhere | jq -r .details.code || true
cat "$root/etc/note"
