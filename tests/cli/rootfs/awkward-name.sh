# Names that mean something to an overlay mount.
make_rootfs
for name in 'a:b' 'a,b' 'a\b' 'a b'; do
    mv "$TMP/rootfs" "$TMP/$name"
    "$PX" exec --rootfs "$TMP/$name" -- echo "$name"
    mv "$TMP/$name" "$TMP/rootfs"
done
