# A place that the tree lacks is laid over it, not made in it.
make_rootfs
mkdir "$TMP/d"
echo bound >"$TMP/d/f"
find "$TMP/rootfs" | sort >"$TMP/before"
"$PX" exec --rootfs "$TMP/rootfs" -v "$TMP/d:/new/place:ro" -v "$TMP/d/f:/etc/note:ro" -- cat /new/place/f /etc/note
find "$TMP/rootfs" | sort | cmp - "$TMP/before"
